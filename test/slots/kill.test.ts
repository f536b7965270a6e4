/** Processes of a shared address are killed by seed: 50; `npm run soak:slots` kills a thousand. */
import assert from 'node:assert/strict';
import { loopback } from '../support/loopback.js';
import { killBySeed } from './kill-soak.js';
import { killAll } from './programs.js';

describe('softroce: processes of a shared address are killed, by seed', function () {
  this.timeout(600_000);
  afterEach(killAll);

  it('50 of them', async () => {
    const addresses = { shared: loopback(85, 1), outside: loopback(85, 2), udpPort: 4791 };
    const { failures, kills } = await killBySeed(7, 50, addresses);
    assert.deepEqual(failures, []);
    assert.equal(kills, 50);
  });
});
