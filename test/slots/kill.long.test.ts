/** Processes of a shared address are killed by seed: 50; `npm run soak:slots` kills a thousand. */
import assert from 'node:assert/strict';
import { loopback } from '../support/loopback.js';
import { killBySeed } from './kill-soak.js';
import { killAll } from './programs.js';

describe('softroce: processes of a shared address are killed, by seed', function () {
  this.timeout(600_000);
  afterEach(killAll);

  it('50 of them, each at a message or a call: the others go on, nothing is lost', async () => {
    const where = { shared: loopback(85, 1), outside: loopback(85, 2), udpPort: 4791 };
    const { failures, kills, brokerKills, at } = await killBySeed(7, 50, where);
    assert.deepEqual(failures, []);
    assert.ok(kills >= 50, `${kills} were killed`);
    assert.ok(brokerKills >= 1, 'the broker was, too');
    const messages = [...at.keys()].filter((moment) => /sends|takes/.test(moment));
    assert.ok(messages.length >= 4, `killed at ${[...at.keys()].join('; ')}`);
  });
});
