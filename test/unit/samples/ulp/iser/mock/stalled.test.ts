// A transfer over iSER that makes no progress ends its connection, which alone has it. In virtual
// time: the retries of the transport would go on for longer.
import assert from 'node:assert/strict';

import { type Ia, openIa } from 'dapl';
import { Fabric, mock } from 'dapl/providers/mock';
import {
  type Disk,
  IscsiTarget,
  MemoryBackend,
  openDisk,
} from '../../../../../../samples/ulp/iser/index.js';

const TARGET = '192.0.2.1';
const STALLED = '192.0.2.2';
const INNOCENT = '192.0.2.3';
const NAME = 'iqn.2026-01.io.test:stalled';
const TIMEOUT_MS = 1000;
const BYTES = 1 << 18;

/** What is lost of the initiator that stalls. Without the first packet the others are no use. */
const LOSSES = {
  'data of a write': 'RC_READ_RESPONSE_FIRST',
  'acknowledgements of data of a read': 'RC_ACKNOWLEDGE',
};

describe('iSER target: a transfer that stalls', () => {
  let fabric: Fabric;
  let there: Ia;
  let target: IscsiTarget;
  const initiators: { readonly ia: Ia; readonly disk: Disk }[] = [];
  const notes: { readonly text: string; readonly atMs: number }[] = [];

  function after(ms: number, run: () => void): () => void {
    let isCancelled = false;
    fabric.clock.at(fabric.clock.now() + ms * 1000, () => isCancelled || run());
    return () => void (isCancelled = true);
  }

  /** Reads now and then until this is so. */
  async function readsUntil(disk: Disk, isSo: () => boolean): Promise<void> {
    while (!isSo()) {
      await disk.read(0n, new Uint8Array(512));
      await new Promise<void>((resolve) => after(50, resolve));
    }
  }

  beforeEach(async () => {
    fabric = new Fabric({ seed: 1, autoRun: true });
    there = await openIa(mock({ fabric, address: TARGET }));
    target = new IscsiTarget({
      name: NAME,
      luns: new Map([[0, new MemoryBackend({ sizeBytes: BYTES })]]),
      memoryBytes: 1 << 20,
      transferTimeoutMs: TIMEOUT_MS,
      keepAliveMs: 0,
      onNote: (text) => notes.push({ text, atMs: fabric.clock.now() / 1000 }),
      alarm: after,
    });
    target.listenIser(there, 3260);
    for (const address of [STALLED, INNOCENT]) {
      const ia = await openIa(mock({ fabric, address }));
      const initiatorName = `${NAME}:${address}`;
      const reconnect = { firstMs: 1, mostMs: 1, attempts: 0 };
      const how = { target: NAME, address: TARGET, initiatorName, reconnect };
      const disk = await openDisk({ ...how, ia });
      initiators.push({ ia, disk });
    }
  });
  afterEach(async () => {
    for (const { ia, disk } of initiators.splice(0)) {
      await ia.close('abrupt');
      await disk.close().catch(() => undefined);
    }
    await target.close(0);
    await there.close('abrupt');
    notes.length = 0;
  });

  for (const [what, opcode] of Object.entries(LOSSES)) {
    it(`ends the session of that initiator, for ${what}, and no other`, async () => {
      const [stalled, innocent] = initiators.map(({ disk }) => disk) as [Disk, Disk];
      const memory = stalled.allocate(BYTES);
      const match = { from: STALLED, opcode, count: Infinity };
      const loss = fabric.faults.add({ match, action: { type: 'drop' } });
      const beganMs = fabric.clock.now() / 1000;
      const transfer = what.endsWith('write')
        ? stalled.write(0n, memory)
        : stalled.read(0n, memory);
      const lost = assert.rejects(transfer, { code: 'ISCSI_CONNECTION' });
      await readsUntil(innocent, () => notes.length > 0);
      const [{ text, atMs }] = notes as [(typeof notes)[0]];
      assert.match(text, new RegExp(`^${STALLED}:[0-9]+: a transfer has made no progress for`));
      const tookMs = atMs - beganMs;
      assert.ok(tookMs >= TIMEOUT_MS && tookMs < 2 * TIMEOUT_MS, `${tookMs} ms`);
      assert.ok(loss.hits > 0);
      await readsUntil(innocent, () => target.sessionCount === 1);
      assert.ok(fabric.clock.now() / 1000 - atMs < 100, 'its memory is not held any longer');
      await innocent.write(0n, new Uint8Array(BYTES));
      loss.remove();
      await lost;
      assert.equal(notes.length, 1, 'nothing happens to the other session');
    });
  }
});
