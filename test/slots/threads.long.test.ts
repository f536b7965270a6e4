/** Threads of one process, each with a slot of one address, are ended at any moment. */
import { pattern } from '../../plugins/testing/port/harness.js';
import { loopback } from '../support/loopback.js';
import { paused } from '../support/patience.js';
import { openDescriptors, openMain, PORT, settled, Thread } from './thread-scene.js';

/** Each of them ends a thread somewhere between its start and its talk. */
const SEEDS = Number(process.env['DAPL_TEST_SEEDS'] ?? 10);
/** From the opening of a thread's device until it talks, on an idle machine, and some more. */
const LIFE_MS = 60;

describe('threads of one process with slots of one address (long)', function () {
  this.timeout(240_000);

  for (const shm of [false, true]) {
    const way = shm ? 'through shared memory' : 'over UDP';
    it(`may be ended at any moment, ${SEEDS} times, ${way}: the others talk on`, async () => {
      const address = loopback(88, shm ? 1 : 2);
      const dice = new Uint8Array(pattern(4 * SEEDS, shm ? 7 : 8).buffer);
      const before = openDescriptors();
      const main = await openMain(address, true, shm);
      const peer = { address, port: PORT };
      const steady = await Thread.open({ address, shm, port: PORT + 1, peer });
      await steady.talks();
      for (let seed = 0; seed < SEEDS; seed++) {
        const victim = new Thread({
          address,
          shm,
          port: PORT + 2 + seed,
          peer: { address, port: PORT + (dice[4 * seed]! % 2) },
        });
        await victim.is('loaded');
        await paused((LIFE_MS * dice[4 * seed + 1]!) / 256);
        await victim.end();
        await steady.talks();
      }
      const last = await Thread.open({ address, shm, port: PORT + 2, peer });
      await last.talks();
      await Promise.all([steady.end(), last.end()]);
      await main.close();
      await settled(() => openDescriptors() <= before, 'descriptors are closed');
    });
  }
});
