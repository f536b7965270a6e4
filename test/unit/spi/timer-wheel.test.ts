import assert from 'node:assert/strict';
import { Timer, TimerWheel } from '../../../core/spi/index.js';
import { SeededRandom } from '../../../providers/mock/index.js';

/** Distances that reach every level, the next tick and the same one. */
const REACH = [0, 1, 15, 16, 17, 1000, 70_000, 5e6, 3e8, 2e10, 1e13];

describe('TimerWheel', () => {
  it('behaves like a list that is searched, for random starts, stops and steps', () => {
    for (let seed = 0; seed < 40; seed++) {
      const random = new SeededRandom(seed);
      let nowUs = random.below(1e9) + random.u32() / 2 ** 32;
      const wheel = new TimerWheel(nowUs);
      const fired: number[] = [];
      const timers = Array.from({ length: 50 }, (_, i) => new Timer(() => fired.push(i)));
      const model = new Map<number, number>();
      for (let step = 0; step < 600; step++) {
        const i = random.below(timers.length);
        const timer = timers[i]!;
        const reach = REACH[random.below(REACH.length)]!;
        if (random.below(3) > 0) {
          const deadlineUs = nowUs - 5 + (reach * random.below(1000)) / 500;
          wheel.start(timer, deadlineUs);
          model.set(i, deadlineUs);
        } else if (random.below(3) === 0) {
          wheel.stop(timer);
          model.delete(i);
        }
        if (random.below(4) === 0) {
          const next = Math.min(Infinity, ...model.values());
          const bound = wheel.nextDeadlineUs();
          assert.ok(bound <= next, `bound ${bound} is after the deadline ${next}`);
          assert.equal(bound, next, 'few timers: the bound is exact');
          nowUs += random.below(2) ? reach / 2 : Math.max(0, Math.min(next, 1e15) - nowUs);
          fired.length = 0;
          wheel.advance(nowUs);
          const due = [...model].filter(([, at]) => at <= nowUs);
          assert.deepEqual(new Set(fired), new Set(due.map(([which]) => which)));
          const order = fired.map((which) => model.get(which)!);
          assert.deepEqual(
            order,
            order.toSorted((a, b) => a - b),
            'in order of deadlines',
          );
          for (const [which] of due) model.delete(which);
        }
        assert.equal(wheel.size, model.size);
        assert.ok(timers.every((one, which) => one.active === model.has(which)));
      }
    }
  });

  it('runs what a handler starts at the next call, and not what it stops', () => {
    const wheel = new TimerWheel(0);
    const fired: string[] = [];
    const again: Timer = new Timer(() => {
      fired.push('again');
      wheel.start(again, 0);
      wheel.stop(other);
    });
    const other = new Timer(() => fired.push('other'));
    wheel.start(again, 10);
    wheel.start(other, 11);
    assert.equal(wheel.advance(100), 1);
    assert.deepEqual(fired, ['again']);
    assert.equal(wheel.advance(100), 1);
    assert.deepEqual(fired, ['again', 'again']);
  });

  it('keeps a timer for ever that has no end', () => {
    const wheel = new TimerWheel(0);
    const never = new Timer(() => assert.fail('expired'));
    wheel.start(never, Infinity);
    wheel.advance(3e15);
    assert.equal(wheel.nextDeadlineUs(), Infinity);
    assert.ok(never.active);
  });

  it('gets further with each look at the time that it has named, however close timers are', () => {
    for (const apartUs of [0, 0.01, 0.1, 3]) {
      const wheel = new TimerWheel(0);
      let fired = 0;
      const deadlineOf = (i: number): number => 1_234_567 + i * apartUs;
      for (let i = 0; i < 500; i++) {
        wheel.start(new Timer(() => fired++), deadlineOf(i));
      }
      let nowUs = 0;
      for (let looks = 0; fired < 500; looks++) {
        assert.ok(looks < 1000, `${apartUs} us apart: ${fired} fired at ${nowUs} us`);
        nowUs = Math.max(nowUs, wheel.nextDeadlineUs());
        // As the driver does it: a look that is too early is spared.
        if (nowUs >= wheel.dueUs) wheel.advance(nowUs);
      }
      assert.equal(nowUs, deadlineOf(499));
    }
  });

  it('gives a lower bound when a great many timers are close together', () => {
    const wheel = new TimerWheel(0);
    for (let i = 0; i < 500; i++) wheel.start(new Timer(() => undefined), 1e6 + ((i * 37) % 500));
    const bound = wheel.nextDeadlineUs();
    assert.ok(bound <= 1e6 && bound > 9e5);
    wheel.advance(bound);
    assert.equal(wheel.size, 500 - (bound === 1e6 ? 1 : 0));
  });

  it('tells of each start, and of nothing else', () => {
    let starts = 0;
    const wheel = new TimerWheel(0, () => (starts += 1));
    const timer = new Timer(() => undefined);
    wheel.start(timer, 100);
    wheel.start(timer, 200);
    wheel.stop(timer);
    wheel.start(timer, 300);
    wheel.advance(300);
    assert.equal(starts, 3);
  });
});
