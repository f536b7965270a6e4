// Every command ends, with what was written; tags and windows are kept, whatever becomes of network
// and target. outages.long.test.ts takes more seeds.
import assert from 'node:assert/strict';
import { outages } from './outages.js';

describe('an initiator over iSER in virtual time', () => {
  it('works, and is told nothing, while nothing goes wrong', async () => {
    const { commands, sessions } = await outages(1, {});
    assert.deepEqual({ commands, sessions }, { commands: 150, sessions: 1 });
  });

  it('goes on where packets are lost', async () => {
    const { commands } = await outages(2, { lossPercent: 3 });
    assert.equal(commands, 150);
  });

  it('makes its session anew after cuts and kills', async () => {
    const { commands, sessions } = await outages(3, { lossPercent: 1, partitions: 2, kills: 2 });
    assert.equal(commands, 150);
    assert.ok(sessions > 1, `${sessions} sessions`);
  });

  for (const [plant, message] of [
    ['a tag is used twice', /is in use/],
    ['beyond the window', /is in the window/],
    ['a write is forgotten', /must have/],
  ] as const) {
    it(`its checks find that ${plant}`, async () => {
      await assert.rejects(outages(4, { plant }), message);
    });
  }
});
