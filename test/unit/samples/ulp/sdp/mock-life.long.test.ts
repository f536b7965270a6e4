import assert from 'node:assert/strict';
import { type Cut, CUTS, liveOnMock } from './mock-life.js';

const SDP = { zeroCopy: 'PIPELINED', offersSink: true } as const;
/** Between two cuts; at each ModeChange besides. */
const STRIDE = 5;
const LOSSY_LIVES = 15;

describe('sdp on the simulated fabric: cut at each step', () => {
  for (const how of Object.keys(CUTS) as Cut[]) {
    it(`${how}: everything ends, and no byte is wrong`, async () => {
      const whole = await liveOnMock({ seed: 1, sdp: SDP });
      assert.deepEqual(whole.faults, []);
      assert.ok(whole.modeChanges.length > 0);
      const steps = new Set([1, 2, 3, 4, 5, whole.steps, ...whole.modeChanges]);
      // Those before and behind a change of mode, too.
      for (const at of whole.modeChanges) for (const near of [at - 1, at + 1]) steps.add(near);
      for (let at = 6; at < whole.steps; at += STRIDE) steps.add(at);
      for (const at of steps) {
        const { faults } = await liveOnMock({ seed: 1, sdp: SDP, cut: { how, at } });
        assert.deepEqual(faults, [], `at step ${at} of ${whole.steps}`);
      }
    });
  }

  it('with loss, by seed', async () => {
    for (let seed = 1; seed <= LOSSY_LIVES; seed++) {
      const sdp = { ...SDP, offersSink: seed % 2 === 0 };
      const { faults } = await liveOnMock({ seed, sdp, lossPercent: 1 + (seed % 10) });
      assert.deepEqual(faults, [], `seed ${seed}`);
    }
  });
});
