import assert from 'node:assert/strict';
import fc from 'fast-check';
import { CongestionWindow } from '../../../providers/hca/congestion-window.js';

const LEAST = 8;

function begun(most: number): CongestionWindow {
  const window = new CongestionWindow();
  window.begin(most);
  return window;
}

describe('Congestion window', () => {
  it('begins with 64 packets, or all that there may be', () => {
    assert.equal(begun(512).packets, 64);
    assert.equal(begun(4).packets, 4);
  });

  it('counts in longer packets where the path has them, but never in fewer than a few', () => {
    const window = new CongestionWindow();
    assert.equal(window.begin(512, 57344), 74);
    assert.equal(window.packets, 9);
    for (let i = 0; i < 5; i++) window.onLoss();
    assert.equal(window.packets, 2);
    assert.equal(window.begin(512, 1024), 512);
  });

  it('doubles in each round trip until the first loss, and ends at the most', () => {
    const window = begun(500);
    const sizes: number[] = [];
    for (let i = 0; i < 5; i++) {
      window.onAcknowledged(window.packets);
      sizes.push(window.packets);
    }
    assert.deepEqual(sizes, [128, 256, 500, 500, 500]);
  });

  it('is halved by a loss, and grows by one packet in a round trip then', () => {
    const window = begun(512);
    window.onAcknowledged(64);
    window.onLoss();
    assert.equal(window.packets, 64);
    for (let round = 1; round <= 10; round++) {
      const whole: number = window.packets;
      window.onAcknowledged(whole - 1);
      assert.equal(window.packets, whole, 'not before the whole window is acknowledged');
      window.onAcknowledged(1);
      assert.equal(window.packets, whole + 1);
    }
  });

  it('counts acknowledgements anew after a loss', () => {
    const window = begun(512);
    window.onLoss();
    window.onAcknowledged(31);
    window.onLoss();
    window.onAcknowledged(15);
    assert.equal(window.packets, 16);
    window.onAcknowledged(1);
    assert.equal(window.packets, 17);
  });

  it('stays between eight packets and the most, always, and never shrinks by an ACK', () => {
    const step = fc.oneof(fc.integer({ min: 0, max: 600 }), fc.constant('loss' as const));
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 600 }), fc.array(step), (most, steps) => {
        const window = begun(most);
        for (const each of steps) {
          const before = window.packets;
          if (each === 'loss') window.onLoss();
          else window.onAcknowledged(each);
          assert.ok(window.packets <= most && window.packets >= Math.min(LEAST, most));
          if (each !== 'loss') assert.ok(window.packets >= before);
          else assert.ok(window.packets <= Math.max(before, Math.min(LEAST, most)));
        }
      }),
    );
  });

  it('of a new connection knows nothing of the last one', () => {
    const window = begun(512);
    window.onLoss();
    window.onAcknowledged(20);
    window.begin(512);
    window.onAcknowledged(64);
    assert.equal(window.packets, 128);
  });
});
