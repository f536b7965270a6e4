// iSER over devices of short messages and small regions: what is longer is split, or refused with
// the limit; nothing is cut.
import assert from 'node:assert/strict';

import { type Ia, openIa } from 'dapl';
import { Fabric, mock } from 'dapl/providers/mock';
import { IscsiTarget, MemoryBackend, openDisk } from '../../../../../../samples/ulp/iser/index.js';
import { withLimits } from '../../../../../support/small-device.js';

const ADDRESS = '192.0.2.1';
const NAME = 'iqn.2026-01.io.test:limits';
const DISK_BYTES = 4 << 20;
const MESSAGE_BYTES = 50_000;
const REGION_BYTES = 2_000_000;

describe('iSER over a device of short messages and small regions', () => {
  const adapters: Ia[] = [];
  const notes: string[] = [];
  let fabric: Fabric;
  let target: IscsiTarget;

  async function adapter(
    address: string,
    isSmall: boolean,
    regionBytes = REGION_BYTES,
  ): Promise<Ia> {
    const limits = { maxMessageBytes: MESSAGE_BYTES, maxMemoryRegionBytes: regionBytes };
    const whole = mock({ fabric, address });
    const ia = await openIa(isSmall ? withLimits(whole, limits) : whole);
    adapters.push(ia);
    return ia;
  }

  beforeEach(() => {
    fabric = new Fabric({ seed: 1, autoRun: true });
    const luns = new Map([[0, new MemoryBackend({ sizeBytes: DISK_BYTES })]]);
    target = new IscsiTarget({ name: NAME, luns, onNote: (note) => notes.push(note) });
  });
  afterEach(async () => {
    await target.close(0);
    await Promise.all(adapters.splice(0).map((ia) => ia.close('abrupt')));
    notes.length = 0;
  });

  const OPEN = {
    target: NAME,
    address: ADDRESS,
    reconnect: { firstMs: 1, mostMs: 1, attempts: 0 },
  };

  for (const small of ['target', 'initiator'] as const) {
    it(`splits what is longer: the ${small} has it`, async () => {
      target.listenIser(await adapter(ADDRESS, small === 'target'));
      const ia = await adapter('192.0.2.2', small === 'initiator');
      const disk = await openDisk({ ...OPEN, ia });
      const written = Uint8Array.from({ length: DISK_BYTES }, (_, at) => at % 251);
      await disk.write(0n, written);
      const read = new Uint8Array(DISK_BYTES);
      await disk.read(0n, read);
      assert.ok(Buffer.from(read).equals(written));
      await disk.close();
      assert.deepEqual(notes, []);
    });
  }

  it('cuts commands to the regions of the initiator', async () => {
    target.listenIser(await adapter(ADDRESS, false));
    const ia = await adapter('192.0.2.2', true, 600_000);
    const disk = await openDisk({ ...OPEN, ia, queueDepth: 16 });
    assert.equal(disk.description.maxTransferBytes, 2 ** 19);
    await disk.write(0n, new Uint8Array(DISK_BYTES).fill(7));
    const read = new Uint8Array(DISK_BYTES);
    await disk.read(0n, read);
    assert.ok(read.every((byte) => byte === 7));
    assert.throws(() => disk.allocate(600_001), { message: /600001.*600000/ });
    await disk.close();
  });

  it('refuses what has to be in one region, and names the limit', async () => {
    const there = await adapter(ADDRESS, true, 100_000);
    assert.throws(() => target.listenIser(there), { message: /131072 bytes.*100000/ });
    const small = await adapter('192.0.2.3', true, 600_000);
    target.listenIser(small);
    const ia = await adapter('192.0.2.2', false);
    await assert.rejects(openDisk({ ...OPEN, address: '192.0.2.3', ia }));
    assert.match(notes.join(), /is refused: .* 727584.*600000/);
    await assert.rejects(openDisk({ ...OPEN, address: '192.0.2.3', ia: small }), {
      message: /1322880.*600000/,
    });
  });
});
