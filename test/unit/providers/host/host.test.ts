import assert from 'node:assert/strict';
import { setTimeout as delay } from 'node:timers/promises';
import {
  ProcessHoldCounter,
  NextTurn,
  RealTimer,
  SystemRandom,
  monotonicClock,
} from '../../../../providers/host/index.js';

/** When something happens while nothing but a late timeout is there to wake the loop. */
class Sleep {
  readonly times: number[] = [];
  private wake = (): void => undefined;

  readonly happens = (): void => {
    this.times.push(monotonicClock.now());
    this.wake();
  };

  async end(): Promise<void> {
    await new Promise<void>((resolve) => {
      const late = setTimeout(resolve, 1000);
      this.wake = () => {
        clearTimeout(late);
        resolve();
      };
    });
    await delay(10); // it may happen only once
  }
}

describe('monotonic clock', () => {
  it('counts microseconds', async () => {
    const start = monotonicClock.now();
    await delay(20);
    const elapsed = monotonicClock.now() - start;
    assert.ok(elapsed > 15_000 && elapsed < 2_000_000, String(elapsed));
  });
});

describe('system random', () => {
  it('spreads over all 32 bits and does not repeat its buffer', () => {
    const random = new SystemRandom();
    const values = Array.from({ length: 3000 }, () => random.u32());
    assert.ok(new Set(values).size > 2990);
    assert.ok(values.every((value) => Number.isInteger(value) && value >= 0 && value < 2 ** 32));
    for (let bit = 0; bit < 32; bit++) {
      const ones = values.filter((value) => (value >>> bit) & 1).length;
      assert.ok(ones > 1200 && ones < 1800, `bit ${String(bit)}: ${String(ones)} ones`);
    }
  });
});

describe('process hold counter', () => {
  it('tells of the first reason and of the last', () => {
    const heard: boolean[] = [];
    const counter = new ProcessHoldCounter((alive) => heard.push(alive));
    counter.retain();
    counter.retain();
    counter.release();
    assert.deepEqual(heard, [true]);
    counter.release();
    counter.retain();
    assert.deepEqual(heard, [true, false, true]);
    counter.release();
    assert.throws(() => counter.release(), RangeError);
  });
});

describe('next turn', () => {
  for (const alive of [true, false]) {
    it(`comes without anything else to wake the loop: process hold ${String(alive)}`, async () => {
      const sleep = new Sleep();
      const turn = new NextTurn(sleep.happens);
      turn.setProcessHold(alive);
      const start = monotonicClock.now();
      turn.request();
      turn.request();
      assert.deepEqual(sleep.times, []);
      await sleep.end();
      assert.equal(sleep.times.length, 1);
      assert.ok(sleep.times[0]! - start < 500_000);
    });
  }

  it('changes its mind about the process, and is cancelled', async () => {
    let ran = 0;
    const turn = new NextTurn(() => (ran += 1));
    turn.request();
    turn.setProcessHold(true);
    turn.setProcessHold(false);
    await delay(20);
    assert.equal(ran, 1);
    turn.request();
    turn.cancel();
    await delay(20);
    assert.equal(ran, 1);
  });
});

describe('real timer', () => {
  const start = (delayUs: number): { timer: RealTimer; expired: number[]; due: number } => {
    const expired: number[] = [];
    const timer = new RealTimer(monotonicClock, () => expired.push(monotonicClock.now()));
    timer.setProcessHold(true);
    const due = monotonicClock.now() + delayUs;
    timer.arm(due);
    return { timer, expired, due };
  };

  for (const delayUs of [-5, 0, 200, 999, 1001, 5500, 20_300]) {
    it(`expires once, not before its time: ${String(delayUs)} us`, async () => {
      const { expired, due } = start(delayUs);
      assert.equal(expired.length, 0);
      await delay(Math.max(0, delayUs / 1000) + 30);
      assert.equal(expired.length, 1);
      assert.ok((expired[0] ?? 0) >= due);
    });
  }

  it('is not late where nothing keeps the process alive', async () => {
    const sleep = new Sleep();
    const timer = new RealTimer(monotonicClock, sleep.happens);
    const due = monotonicClock.now() + 5900;
    timer.arm(due);
    await sleep.end();
    assert.equal(sleep.times.length, 1);
    const lateUs = sleep.times[0]! - due;
    assert.ok(lateUs >= 0 && lateUs < 500_000, `late by ${String(lateUs)} us`);
  });

  it('takes an earlier deadline, a later one, and none', async () => {
    const { timer, expired } = start(40_000);
    timer.arm(monotonicClock.now() + 3000);
    await delay(15);
    assert.equal(expired.length, 1);
    timer.arm(monotonicClock.now() + 3000);
    const later = monotonicClock.now() + 30_000;
    timer.arm(later);
    await delay(15);
    assert.equal(expired.length, 1);
    await delay(40);
    assert.equal(expired.length, 2);
    assert.ok((expired[1] ?? 0) >= later);
    timer.arm(monotonicClock.now() + 2000);
    timer.close();
    await delay(15);
    assert.equal(expired.length, 2);
  });

  it('can be armed again from its own expiry', async () => {
    let left = 3;
    const timer: RealTimer = new RealTimer(monotonicClock, () => {
      if (--left > 0) timer.arm(monotonicClock.now() + 300);
    });
    timer.setProcessHold(true);
    timer.arm(monotonicClock.now() + 300);
    await delay(40);
    assert.equal(left, 0);
  });
});
