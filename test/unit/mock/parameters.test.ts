/** Every parameter of the software HCA works at its least and at its most, on both sides. */
import assert from 'node:assert/strict';
import { openIa } from '../../../core/index.js';
import { integer } from '../../../core/spi/checks/index.js';
import { PARAMETER_KINDS } from '../../../providers/hca/common/parameters.js';
import { defaultParameters, type HcaParameters } from '../../../providers/hca/index.js';
import { Fabric, mock } from '../../../providers/mock/index.js';
import { assertSameBytes, connected, fillPattern } from '../../../plugins/testing/suite/peer.js';

const A = '10.0.0.1';
const B = '10.0.0.2';
const BYTES = 60_000;

type Edge = readonly [label: string, parameters: Partial<HcaParameters>];

/** Of each its ends, and all that are least, and most, together. */
function edges(): Edge[] {
  const ends = Object.entries(PARAMETER_KINDS).flatMap(([name, { expected }]) => {
    const [, least, most] = /^an integer from (\d+) to (\d+)$/.exec(expected) ?? [];
    return least === undefined ? [] : [[name, Number(least), Number(most)] as const];
  });
  assert.equal(ends.length, Object.keys(defaultParameters).length - 1, 'all but agreements');
  for (const [name, least, most] of ends) {
    const value = defaultParameters[name as keyof HcaParameters];
    assert.ok(integer(least, most).accepts(value), name);
  }
  const together = (which: 1 | 2): Partial<HcaParameters> =>
    Object.fromEntries(ends.map((end) => [end[0], end[which]]));
  return [
    ...ends.flatMap(([name, least, most]): Edge[] => [
      [`${name} ${least}`, { [name]: least }],
      [`${name} ${most}`, { [name]: most }],
    ]),
    ['all the least', together(1)],
    ['all the most', together(2)],
    ['no agreements', { agreements: false }],
  ];
}

describe('parameters of the software HCA', () => {
  for (const [label, parameters] of edges()) {
    it(`${label}: messages and WRITEs pass, READs where they may, loss or not`, async () => {
      const { maxSge = 4, maxInitiatorDepth = 1, maxResponderResources = 1 } = parameters;
      const fabric = new Fabric({ autoRun: true, link: { lossPercent: 1 } });
      const open = (address: string): ReturnType<typeof openIa> =>
        openIa(mock({ fabric, address, parameters }));
      const [active, passive] = [await open(A), await open(B)];
      const close = async (): Promise<void> => {
        await Promise.all([active.close(), passive.close()]);
      };
      const iov = Math.min(maxSge, 4);
      const reads = Math.min(maxInitiatorDepth, maxResponderResources, 4);
      const attributes = {
        ...{ maxRequestIov: iov, maxRecvIov: iov },
        ...{ maxRdmaReadIn: reads, maxRdmaReadOut: reads },
      };
      const pair = { active, passive, passiveAddress: B, close };
      const peers = await connected(pair, { attributes });
      const [mine, yours] = [peers.active.lmr, peers.passive.lmr];
      fillPattern(mine.bytes, 5);
      peers.passive.ep.postRecv(yours.segment(0, BYTES), 1);
      peers.active.ep.postSend(mine.segment(0, BYTES), 2);
      await peers.active.expect('dto 2 SUCCESS');
      await peers.passive.expect('dto 1 SUCCESS');
      assertSameBytes(yours.bytes.subarray(0, BYTES), mine.bytes.subarray(0, BYTES));
      yours.bytes.fill(0);
      peers.active.ep.postRdmaWrite(mine.segment(0, BYTES), 3, peers.passive.remote());
      await peers.active.expect('dto 3 SUCCESS');
      assertSameBytes(yours.bytes.subarray(0, BYTES), mine.bytes.subarray(0, BYTES));
      if (reads > 0) {
        fillPattern(yours.bytes, 9);
        peers.active.ep.postRdmaRead(mine.segment(0, BYTES), 4, peers.passive.remote());
        await peers.active.expect('dto 4 SUCCESS');
        assertSameBytes(mine.bytes.subarray(0, BYTES), yours.bytes.subarray(0, BYTES));
      }
      await close();
      await fabric.run({ untilIdle: true });
      assert.equal(fabric.pool.inUse, 0);
    });
  }
});
