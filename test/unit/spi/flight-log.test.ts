import assert from 'node:assert/strict';
import { FlightLog, NO_ROW } from '../../../core/spi/internal/index.js';
import { SeededRandom } from '../../../providers/mock/index.js';

const MOST = 128;

function eventsOf(log: FlightLog, last: number, most = Infinity): number[] {
  return log.read(last, most).map(({ event }) => event);
}

describe('FlightLog', () => {
  it('tells each writer its own rows, oldest first', () => {
    const log = new FlightLog();
    let [one, two] = [NO_ROW, NO_ROW];
    assert.deepEqual(log.read(one, 10), []);
    one = log.add(one, 1.5, 11, 12, 13);
    two = log.add(two, 2, 21);
    one = log.add(one, 3, 14, 15);
    assert.deepEqual(log.read(one, 10), [
      { timeUs: 1.5, event: 11, a: 12, b: 13 },
      { timeUs: 3, event: 14, a: 15, b: 0 },
    ]);
    assert.deepEqual(eventsOf(log, two), [21]);
    assert.deepEqual(eventsOf(log, one, 1), [14], 'the last ones');
  });

  it('keeps every row until it is full, and the youngest ones then', () => {
    const random = new SeededRandom(11);
    const log = new FlightLog(MOST);
    const lasts = Array.from({ length: 7 }, () => NO_ROW);
    const all: { readonly writer: number; readonly event: number }[] = [];
    for (let event = 0; event < 5 * MOST; event++) {
      const writer = random.below(lasts.length);
      lasts[writer] = log.add(lasts[writer]!, event, event);
      all.push({ writer, event });
      const kept = all.slice(-MOST);
      for (const [at, last] of lasts.entries()) {
        const own = kept.filter((row) => row.writer === at).map((row) => row.event);
        assert.deepEqual(eventsOf(log, last), own, `writer ${at} after ${event}`);
      }
    }
  });

  it('says nothing of rows that have gone, nor what others wrote in their place', () => {
    const log = new FlightLog(MOST);
    const early = log.add(NO_ROW, 0, 1);
    let late = NO_ROW;
    for (let i = 0; i < MOST; i++) late = log.add(late, i, 2);
    assert.deepEqual(log.read(early, 10), []);
    const again = log.add(early, MOST, 3);
    assert.deepEqual(eventsOf(log, again), [3], 'it goes on from where it was');
  });

  it('writes what is no u32 as the most', () => {
    const log = new FlightLog();
    const last = log.add(NO_ROW, 0, 1, 2 ** 35, 1.5);
    assert.deepEqual(log.read(last, 1), [{ timeUs: 0, event: 1, a: 2 ** 32 - 1, b: 1 }]);
  });
});
