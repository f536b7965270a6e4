import assert from 'node:assert/strict';
import { SeededRandom } from '../../../../providers/mock/index.js';
import { LoopPacer, PollGain } from '../../../../providers/hca/pacing/index.js';

/** A consumer whose messages take one time where its device sleeps, another where it polls. */
class Exchange {
  nowUs = 1000;
  polledUs = 0;
  private spentUs = 0;

  constructor(
    private readonly asleep: (message: number) => number,
    private readonly polled: (message: number) => number,
    readonly gain = new PollGain(),
  ) {}

  /** @returns the part of the time in which the device polled */
  run(forUs: number): number {
    const endUs = this.nowUs + forUs;
    this.polledUs = this.spentUs = 0;
    for (let message = 0; this.nowUs < endUs; message++) {
      const { pays } = this.gain;
      const us = (pays ? this.polled : this.asleep)(message);
      if (pays) this.polledUs += us;
      this.spentUs += us;
      this.nowUs += us;
      this.gain.onCompletions(2, this.nowUs);
    }
    return this.polledUs / this.spentUs;
  }
}

describe('pacing: what polling gains', () => {
  it('counts completions that a look at the port has brought, too', () => {
    const counts: number[] = [];
    const gain = {
      pays: true,
      pollUs: 100,
      onCompletions: (count: number) => void counts.push(count),
    };
    const polled = { adaptiveQueues: 1, readStreams: { nextUs: () => 0 }, acksLeft: false };
    const pacer = new LoopPacer(polled, gain);
    pacer.sleeps(false, 1, { receivedPackets: 1, completions: 1, nowUs: 10 });
    pacer.sleeps(false, 0, { receivedPackets: 2, completions: 4, nowUs: 20 });
    pacer.sleeps(false, 0, { receivedPackets: 2, completions: 4, nowUs: 30 });
    assert.deepEqual(counts, [1, 3]);
  });

  it('needs two cores that nobody else runs on', () => {
    const least = (left: number): number => {
      let now = left;
      const gain = new PollGain(0, () => now);
      const exchange = new Exchange(
        () => 100,
        () => 10,
        gain,
      );
      const share = exchange.run(2_000_000);
      now = 2;
      exchange.run(2_000_000);
      assert.ok(exchange.run(20_000_000) > 0.9, 'tries once there are two');
      return share;
    };
    assert.equal(least(1), 0);
    assert.ok(least(2) > 0.5);
  });

  it('sleeps first: the compiler has the other cores', () => {
    assert.equal(new PollGain().pays, false);
    const exchange = new Exchange(
      () => 100,
      () => 10,
    );
    assert.equal(exchange.run(2_000), 0);
  });

  it('polls where that is faster, nearly always', () => {
    const exchange = new Exchange(
      () => 100,
      () => 10,
    );
    exchange.run(500_000);
    assert.ok(exchange.run(20_000_000) > 0.98);
  });

  it('sleeps where both take the same', () => {
    const exchange = new Exchange(
      () => 100,
      () => 95,
    );
    exchange.run(60_000_000);
    assert.ok(exchange.run(60_000_000) < 0.02);
  });

  it('sleeps where polling costs a time slice now and then', () => {
    const exchange = new Exchange(
      () => 60,
      (message) => (message % 100 === 0 ? 8000 : 10),
    );
    exchange.run(60_000_000);
    assert.ok(exchange.run(60_000_000) < 0.05);
  });

  it('sleeps where a neighbour spoils some windows, and polling never gains much', () => {
    const random = new SeededRandom(5);
    let untilUs = 0;
    let spoilt = false;
    const exchange: Exchange = new Exchange(
      () => us(60),
      () => us(250),
    );
    const us = (undisturbed: number): number => {
      if (exchange.nowUs >= untilUs) {
        untilUs = exchange.nowUs + 20_000;
        spoilt = random.u32() % 3 === 0;
      }
      return spoilt ? 400 : undisturbed;
    };
    exchange.run(60_000_000);
    assert.ok(exchange.run(60_000_000) < 0.1);
  });

  it('sleeps where messages come at a rate of their own', () => {
    const exchange = new Exchange(
      () => 10_000,
      () => 10_000,
    );
    assert.equal(exchange.run(60_000_000), 0);
  });

  it('polls where it helps only if both sides do, whenever they began', () => {
    // The second program has started 7.3 ms later; their clocks begin with them.
    const sides = [new PollGain(0), new PollGain(7_300)] as const;
    let nowUs = 50_000;
    const part = (forUs: number): number => {
      let polledUs = 0;
      for (const endUs = nowUs + forUs; nowUs < endUs;) {
        const both = sides[0].pays && sides[1].pays;
        const us = both ? 10 : 100;
        nowUs += us;
        if (both) polledUs += us;
        sides[0].onCompletions(2, nowUs);
        sides[1].onCompletions(2, nowUs - 7_300);
      }
      return polledUs / forUs;
    };
    part(1_000_000);
    assert.ok(part(20_000_000) > 0.95);
  });

  it('takes note within seconds that a neighbour has come, or gone', () => {
    let neighbour = false;
    const exchange = new Exchange(
      () => 60,
      () => (neighbour ? 300 : 10),
    );
    exchange.run(30_000_000);
    neighbour = true;
    exchange.run(6_000_000);
    assert.ok(exchange.run(1_000_000) < 0.3);
    neighbour = false;
    exchange.run(6_000_000);
    assert.ok(exchange.run(1_000_000) > 0.7);
  });
});
