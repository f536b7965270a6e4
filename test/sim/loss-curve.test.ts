import assert from 'node:assert/strict';
import { loopbackLoss } from '../../bench/loss/loopback.js';
import { goBackN } from '../../bench/loss/models.js';
import {
  LINK,
  longPath,
  randomLoss,
  recoveryUs,
  sharedBottleneck,
} from '../../bench/loss/scenarios.js';
import { networkOf } from '../support/loopback.js';

/** Virtual time: the same figures on every machine. The bounds are below what is measured. */
describe('Goodput under loss, in virtual time', function () {
  this.timeout(120_000);

  const bounds = [
    { percent: 0, least: 0.98 },
    { percent: 0.1, least: 0.85 },
    { percent: 1, least: 0.9 },
    { percent: 5, least: 0.85 },
  ];
  for (const { percent, least } of bounds) {
    it(`is at least ${least} of ideal go-back-N at ${percent} % random loss`, () => {
      const { goodput, timeouts } = randomLoss(percent, 3, 50_000);
      const ideal = goBackN(percent / 100, LINK);
      assert.ok(goodput >= least * ideal, `${goodput.toFixed(3)} of ${ideal.toFixed(3)}`);
      assert.ok(goodput <= 1.001);
      assert.equal(timeouts, 0, 'losses are found before the ACK timer ends');
    });
  }

  for (const operation of ['SEND', 'WRITE', 'READ'] as const) {
    it(`${operation}s fill a path whose round trip is longer than the first guess of it`, () => {
      const path = longPath(40_000);
      const { goodput, sentTwice } = randomLoss(0, 1, 3_000_000, operation, path);
      assert.ok(goodput >= 0.95, `goodput ${goodput.toFixed(3)}`);
      assert.ok(sentTwice <= 0.05, `${sentTwice.toFixed(3)} sent again`);
    });
  }

  it('gives the same numbers for the same seed, and others for another', () => {
    const [one, again, other] = [5, 5, 6].map((seed) => randomLoss(1, seed, 10_000));
    assert.deepEqual(one, again);
    assert.notDeepEqual(one, other);
  });

  it('does not collapse as flows share a port, and none starves or fails', () => {
    for (const flows of [2, 4, 16]) {
      const { goodput, fairness, failed } = sharedBottleneck(flows, 256 << 10, 1, 40_000);
      assert.equal(failed, 0);
      assert.ok(goodput >= 0.6, `${flows} flows: goodput ${goodput.toFixed(3)}`);
      assert.ok(fairness >= 0.6, `${flows} flows: fairness ${fairness.toFixed(3)}`);
    }
  });

  it('is shared soon by many flows that begin at once, and lose first packets', () => {
    const { fairness, failed } = sharedBottleneck(32, 256 << 10, 1, 60_000, true);
    assert.equal(failed, 0);
    assert.ok(fairness >= 0.85, `fairness ${fairness.toFixed(3)}`);
  });

  it('goes on soon after an outage, in proportion to its length', () => {
    for (const outageUs of [1000, 10_000, 100_000]) {
      const us = recoveryUs(outageUs, 1);
      assert.ok(us <= 1000 + 1.1 * outageUs, `${us} us after ${outageUs} us`);
    }
  });
});

describe('The lossy port', () => {
  it('carries writes over real sockets, and loses what its seed says', async () => {
    const whole = await loopbackLoss(0, 1, 300, networkOf(10));
    assert.ok(whole.goodput > 0);
    assert.equal(whole.lost, 0);
    const lossy = await loopbackLoss(10, 1, 300, networkOf(10));
    assert.ok(lossy.goodput > 0, 'losses are repaired');
    assert.ok(lossy.lost > 0, 'and there were some');
  });
});
