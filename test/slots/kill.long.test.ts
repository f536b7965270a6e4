/** A thousand processes of a shared address are killed, by seed (kill-soak.ts). */
import assert from 'node:assert/strict';
import { loopback } from '../support/loopback.js';
import { killBySeed } from './kill-soak.js';
import { killAll } from './programs.js';

describe('softroce: a thousand processes of a shared address are killed, by seed', function () {
  this.timeout(3_600_000);
  afterEach(killAll);

  for (const seed of [1, 2, 3, 4]) {
    it(`250 of them, seed ${seed}`, async () => {
      const [shared, outside] = [loopback(86, 2 * seed), loopback(86, 2 * seed + 1)];
      const { failures, kills } = await killBySeed(seed, 250, { shared, outside, udpPort: 4791 });
      assert.deepEqual(failures, []);
      assert.equal(kills, 250);
    });
  }
});
