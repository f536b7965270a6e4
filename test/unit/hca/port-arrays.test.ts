/** What the software HCA needs of a packet port's arrays: the least is enough, less is refused. */
import assert from 'node:assert/strict';
import { DatError, openIa } from '../../../core/index.js';
import type { PacketPort } from '../../../core/spi/index.js';
import { checkPort } from '../../../providers/hca/common/port-arrays.js';
import { defaultParameters } from '../../../providers/hca/index.js';
import { Fabric, mock } from '../../../providers/mock/index.js';
import { assertSameBytes, connected, fillPattern } from '../../../plugins/testing/suite/peer.js';
import { leastSizes, type PortSizes, smallPort } from '../../support/small-port.js';

const A = '10.0.0.1';
const B = '10.0.0.2';

describe('arrays of a packet port', () => {
  for (const maxSge of [1, 4, 16]) {
    it(`of the least sizes carry messages, READs and WRITEs (maxSge ${maxSge})`, async () => {
      const fabric = new Fabric({ autoRun: true, link: { lossPercent: 1 } });
      const open = (address: string): ReturnType<typeof openIa> => {
        const port = smallPort((over) => leastSizes(over, maxSge));
        const provider = mock({ fabric, address, parameters: { maxSge } });
        return openIa(provider, { modules: { port } });
      };
      const [active, passive] = [await open(A), await open(B)];
      const close = async (): Promise<void> => {
        await Promise.all([active.close(), passive.close()]);
      };
      const attributes = { maxRequestIov: maxSge, maxRecvIov: maxSge };
      const pair = { active, passive, passiveAddress: B, close };
      const peers = await connected(pair, { attributes });
      const [mine, yours] = [peers.active.lmr, peers.passive.lmr];
      fillPattern(mine.bytes, 5);
      const parts = Array.from({ length: maxSge }, (_, i) => mine.segment(i * 700, 700));
      yours.bytes.fill(0);
      peers.passive.ep.postRecv(yours.segment(0, maxSge * 700), 1);
      peers.active.ep.postSend(parts, 2);
      await peers.active.expect('dto 2 SUCCESS');
      await peers.passive.expect('dto 1 SUCCESS');
      assertSameBytes(yours.bytes.subarray(0, maxSge * 700), mine.bytes.subarray(0, maxSge * 700));
      peers.active.ep.postRdmaWrite(mine.segment(0, 20_000), 3, peers.passive.remote());
      await peers.active.expect('dto 3 SUCCESS');
      assertSameBytes(yours.bytes.subarray(0, 20_000), mine.bytes.subarray(0, 20_000));
      fillPattern(yours.bytes, 9);
      peers.active.ep.postRdmaRead(mine.segment(0, 20_000), 4, peers.passive.remote());
      await peers.active.expect('dto 4 SUCCESS');
      assertSameBytes(mine.bytes.subarray(0, 20_000), yours.bytes.subarray(0, 20_000));
      await close();
      await fabric.run({ untilIdle: true });
      assert.equal(fabric.pool.inUse, 0);
    });
  }

  const names = ['rxArena', 'rxPackets', 'placements', 'txPackets', 'txSegments'] as const;
  for (const name of names) {
    it(`are refused where ${name} has one entry less, when the device opens`, async () => {
      const fabric = new Fabric({ autoRun: true });
      const sizes = leastSizes(fabric, defaultParameters.maxSge);
      const fewer: PortSizes = { ...sizes, [name]: sizes[name] - 1 };
      const opening = openIa(mock({ fabric, address: A }), {
        modules: { port: smallPort(() => fewer) },
      });
      const text = `the length of ${name} of the packet port is ${fewer[name]}; it must be`;
      await assert.rejects(opening, (error) => {
        assert.ok(DatError.isDatError(error), String(error));
        assert.equal(error.code, 'DAT_INVALID_PARAMETER');
        assert.ok(error.message.includes(`${text} ${sizes[name]} at least`), error.message);
        return true;
      });
      // Nothing of it is left open.
      await (await openIa(mock({ fabric, address: A }))).close();
    });
  }

  it('are those of a port that has addresses and a path MTU', () => {
    const port = new Fabric().openPort({ addresses: [A] });
    checkPort(port, defaultParameters);
    const refused = (members: object, text: RegExp): void =>
      assert.throws(
        () => checkPort({ ...port, ...members } as unknown as PacketPort, defaultParameters),
        (error) => error instanceof Error && error.name === 'SpiError' && text.test(error.message),
      );
    refused({ gids: [] }, /^gids of the packet port is an array of 0; it must be a list of GIDs/);
    refused({ gids: [new Uint8Array(4)] }, /^gids of the packet port is an array of 1;/);
    refused(
      { mtuBytes: 1500 },
      /^mtuBytes of the packet port is 1500; it must be one of 256, 512,/,
    );
    refused({ mtuBytes: 0 }, /^mtuBytes of the packet port is 0;/);
    refused(
      { localMtuBytes: 9000 },
      /^localMtuBytes of the packet port is 9000; .* 57344 or absent/,
    );
    const rxArena = new Uint8Array(57_391);
    refused({ localMtuBytes: 57344, rxArena }, /rxArena .* is 57391; it must be 57392 at least$/);
    refused(
      { rxArena: new ArrayBuffer(9) },
      /^rxArena of the packet port is an ArrayBuffer; .* Uint/,
    );
    refused(
      { txSegments: undefined },
      /^txSegments of the packet port is undefined; .* Uint32Array$/,
    );
  });
});
