/** Handlers are bounded by time, by the clock that is handed in, and not by their number alone. */
import assert from 'node:assert/strict';
import { WrOpcode } from '../../../core/spi/index.js';
import { HandlerPacer, LIMITS } from '../../../providers/hca/pacing/index.js';
import { connectedPair, drain, postReceive, postSend } from '../../support/hca-pair.js';

const TURN_US = LIMITS.HANDLERS_US.value;
const SHORT = LIMITS.SHORT_HANDLERS.value;

describe('handlers of a device', () => {
  /** A device with so many tasks that take a time each; how many have run. */
  function busy(tasks: number, eachUs: number) {
    const { pair, qpA, qpB } = connectedPair(21);
    const { driver } = pair.a;
    let ran = 0;
    for (let i = 0; i < tasks; i++) {
      driver.defer(() => {
        ran += 1;
        pair.clock.timeUs += eachUs;
      });
    }
    return { pair, qpA, qpB, driver, ran: () => ran };
  }

  it('start no more after 4 ms, and go on in the next turn of the event loop', () => {
    const { driver, ran } = busy(10, 1000);
    for (const expected of [4, 8]) {
      assert.equal(driver.pump(), true, 'there is more to do');
      assert.equal(ran(), expected);
    }
    driver.pump();
    assert.equal(ran(), 10);
    assert.equal(driver.pump(), false);
  });

  it('start no more in further pumps of that turn, in which packets move all the same', () => {
    const { pair, qpA, qpB, driver, ran } = busy(10, 1000);
    driver.pump();
    postReceive(pair.b, qpB, [{ offset: 0, length: 8 }]);
    postSend(pair.a, qpA, { opcode: WrOpcode.SEND, segments: [{ offset: 0, length: 8 }] });
    for (let i = 0; i < 3; i++) assert.equal(driver.pump(false, true), true);
    assert.equal(ran(), 4);
    pair.b.driver.pump();
    assert.equal(drain(pair.b.receiveCq).length, 1);
    driver.pump();
    assert.equal(ran(), 8);
  });

  it('start one in each turn at least, however long it takes', () => {
    const { driver, ran } = busy(3, 1_000_000);
    for (const expected of [1, 2, 3]) {
      driver.pump();
      assert.equal(ran(), expected);
    }
  });

  it('that defer themselves again are bounded alike', () => {
    const { driver, ran, pair } = busy(0, 0);
    let calls = 0;
    const again = (): void => {
      calls += 1;
      pair.clock.timeUs += 1000;
      driver.defer(again);
    };
    driver.defer(again);
    assert.equal(driver.pump(), true);
    assert.deepEqual([calls, ran()], [4, 0]);
  });

  it('are bounded by count alone while no time passes', () => {
    const { driver, ran } = busy(1000, 0);
    driver.pump();
    assert.equal(ran(), 1000);
  });
});

describe('the clock of handlers', () => {
  /** Readings, and handlers that start in a turn. */
  function turn(eachUs: (handler: number) => number): { readings: number; started: number } {
    const pacer = new HandlerPacer();
    let nowUs = 5000;
    let readings = 0;
    let started = 0;
    const at = (): boolean => {
      readings += 1;
      return pacer.startsAt(nowUs);
    };
    for (let starts = pacer.begins(nowUs, false); starts && started < 10_000;) {
      nowUs += eachUs(started++);
      starts = pacer.startsUnseen() || at();
    }
    return { readings, started };
  }

  it('is read before each that follows a long one', () => {
    assert.deepEqual(
      turn(() => 1000),
      { readings: 4, started: 4 },
    );
  });

  it('is read before one of four where they are short', () => {
    const { readings, started } = turn(() => 1);
    assert.equal(started, TURN_US + (SHORT - (TURN_US % SHORT)) - SHORT + 1);
    assert.ok(readings <= started / SHORT + 2, `${readings} readings for ${started}`);
  });

  it('so that those that turn out to be long are few', () => {
    for (let first = 0; first < 2 * SHORT; first++) {
      const { started } = turn((handler) => (handler < first ? 1 : 3 * TURN_US));
      assert.ok(started <= first + SHORT, `${started - first} long ones behind ${first} short`);
    }
  });
});
