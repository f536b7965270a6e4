import assert from 'node:assert/strict';
import fc from 'fast-check';
import { CongestionWindow } from '../../../providers/hca/rc/congestion-window.js';

const LEAST = 2;
/** Of the round trip time. */
const IDLE = 1;
const SOME = 1.2;
const QUEUE = 2;

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
    for (let i = 0; i < 5; i++) window.onLoss(QUEUE);
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
    window.onLoss(QUEUE);
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
    window.onLoss(QUEUE);
    window.onAcknowledged(31);
    window.onLoss(QUEUE);
    window.onAcknowledged(15);
    assert.equal(window.packets, 16);
    window.onAcknowledged(1);
    assert.equal(window.packets, 17);
  });

  it('stays between two packets and the most, always, and never shrinks by an ACK', () => {
    const step = fc.oneof(fc.integer({ min: 0, max: 600 }), fc.constant('loss' as const));
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 600 }), fc.array(step), (most, steps) => {
        const window = begun(most);
        for (const each of steps) {
          const before = window.packets;
          if (each === 'loss') window.onLoss(QUEUE);
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
    window.onLoss(QUEUE);
    window.onAcknowledged(20);
    window.begin(512);
    window.onAcknowledged(64);
    assert.equal(window.packets, 128);
  });

  describe('after a loss by chance', () => {
    /** Of 64 packets, all of which have been acknowledged since the last loss. */
    function grown(): CongestionWindow {
      const window = begun(64);
      window.onAcknowledged(64);
      return window;
    }

    it('keeps what a round trip has delivered, in its pace without queues', () => {
      const window = grown();
      window.onRoundTrip(60, 100, 100);
      window.onLoss(SOME);
      assert.equal(window.packets, 60);
      window.onAcknowledged(20);
      window.onRoundTrip(48, 120, 100);
      window.onLoss(IDLE);
      assert.equal(window.packets, 60, 'the best of the last round trips counts');
    });

    it('is never larger than before the loss, and halved if less has been delivered', () => {
      const window = grown();
      window.onRoundTrip(500, 100, 100);
      window.onLoss(IDLE);
      assert.equal(window.packets, 64);
      const slow = grown();
      slow.onRoundTrip(64, 400, 100);
      slow.onLoss(IDLE);
      assert.equal(slow.packets, 32);
    });

    it('forgets what was delivered long ago', () => {
      const window = grown();
      window.onRoundTrip(64, 100, 100);
      for (let round = 0; round < 32; round++) window.onRoundTrip(8, 100, 100);
      window.onLoss(IDLE);
      assert.equal(window.packets, 32);
    });

    it('is halved all the same where the round trip time shows a queue', () => {
      const window = grown();
      window.onRoundTrip(64, 100, 100);
      window.onLoss(QUEUE);
      assert.equal(window.packets, 32);
    });

    it('is halved all the same where the losses are too many to be chance', () => {
      const window = grown();
      let before = 64;
      for (let loss = 0; loss < 64; loss++) {
        window.onAcknowledged(4);
        window.onRoundTrip(64, 100, 100);
        before = window.packets;
        window.onLoss(IDLE);
      }
      assert.equal(window.packets, Math.max(before >> 1, LEAST));
    });

    it('that is one of many flows is halved, and doubles to a few on an idle path', () => {
      for (const { inflation, sizes } of [
        { inflation: IDLE, sizes: [4, 8, 16, 17] },
        { inflation: SOME, sizes: [4, 5, 6, 7] },
      ]) {
        const small = begun(64);
        small.onAcknowledged(640);
        for (const each of [QUEUE, QUEUE, QUEUE, inflation]) small.onLoss(each);
        const seen = [small.packets];
        for (let round = 0; round < 3; round++) {
          small.onAcknowledged(small.packets);
          seen.push(small.packets);
        }
        assert.deepEqual(seen, sizes);
      }
    });

    it('has its acknowledgements more often', () => {
      const window = grown();
      assert.equal(window.ackEvery, 16);
      window.onRoundTrip(64, 100, 100);
      window.onLoss(IDLE);
      assert.equal(window.ackEvery, 4);
    });
  });

  describe('after silence', () => {
    it('lets one packet ask, however often', () => {
      const window = begun(512);
      window.onSilence(QUEUE, 64);
      assert.equal(window.packets, 1);
      window.onSilence(QUEUE, 64);
      assert.equal(window.packets, 1);
    });

    it('is what it was when all had arrived, only late', () => {
      const window = begun(512);
      window.onSilence(QUEUE, 64);
      window.onSilence(QUEUE, 64);
      window.onAnswer(true);
      assert.equal(window.packets, 64);
      window.onAcknowledged(64);
      assert.equal(window.packets, 128, 'it still doubles');
    });

    it('doubles from two packets to half of what it was when they were lost', () => {
      const window = begun(512);
      window.onSilence(QUEUE, 64);
      window.onAnswer(false);
      const sizes: number[] = [window.packets];
      for (let i = 0; i < 5; i++) {
        window.onAcknowledged(window.packets);
        sizes.push(window.packets);
      }
      assert.deepEqual(sizes, [2, 4, 8, 16, 32, 33]);
    });

    it('doubles as from the start, when nothing had ever come back', () => {
      const window = begun(512);
      window.onSilence(Infinity, 64);
      window.onAnswer(false);
      const sizes: number[] = [window.packets];
      for (let i = 0; i < 6; i++) {
        window.onAcknowledged(window.packets);
        sizes.push(window.packets);
      }
      assert.deepEqual(sizes, [2, 4, 8, 16, 32, 64, 128]);
    });

    it('goes out again at once where losses are usual: it was the NAK that was lost', () => {
      const window = begun(64);
      window.onAcknowledged(64);
      window.onRoundTrip(40, 100, 100);
      window.onSilence(IDLE, 64);
      assert.equal(window.packets, 40);
      window.onSilence(IDLE, 64);
      assert.equal(window.packets, 1, 'but only once');
    });

    it('does not take for a path with losses where all was only late', () => {
      const window = begun(512);
      for (const run of [64, 3, 200, 1]) {
        window.onAcknowledged(run);
        window.onSilence(QUEUE, 64);
        window.onAnswer(true);
        assert.equal(window.lossy, false);
      }
      window.onLoss(QUEUE);
      assert.equal(window.lossy, true, 'but then it is one, after 268 packets');
      for (let loss = 0; loss < 15; loss++) window.onLoss(QUEUE);
      window.onAcknowledged(2048 * 17);
      window.onLoss(QUEUE);
      assert.equal(window.lossy, false, 'the average knows of 268, not of 1');
    });

    it('learns nothing from a packet that went alone, be it late or lost', () => {
      const window = begun(512);
      window.onSilence(QUEUE, 1);
      window.onAnswer(false);
      assert.equal(window.lossy, false);
      assert.equal(window.packets, 2, 'what is lost may have met a full queue all the same');
      window.begin(1);
      window.onSilence(QUEUE, 1);
      assert.equal(window.lossy, true, 'unless the window let no other go');
    });

    it('is left alone by an answer that nobody asked for', () => {
      const window = begun(512);
      window.onAnswer(false);
      assert.equal(window.packets, 64);
    });
  });
});
