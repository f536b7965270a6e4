import assert from 'node:assert/strict';
import { type SlotsReport, SlotsSimulation } from './slots-simulation.js';

/** A few of the moments that slots-simulation.long.test.ts goes through one by one. */
const SEEDS = 50;

describe('simulator, processes that share an address', () => {
  it('all live', async () => {
    for (const seed of [1, 2, 3]) {
      const { killed } = await new SlotsSimulation({ seed }).run();
      assert.deepEqual(killed, []);
    }
  });

  it('are killed at a message, and leave nothing behind', async () => {
    const reports: SlotsReport[] = [];
    for (let seed = 1; seed <= SEEDS; seed++) {
      const killAt = 1 + ((seed * 37) % 70);
      try {
        reports.push(await new SlotsSimulation({ seed, killAt }).run());
      } catch (error) {
        throw new Error(`seed ${seed}, killed at message ${killAt}`, { cause: error });
      }
    }
    const count = (of: (report: SlotsReport) => boolean): number => reports.filter(of).length;
    const killed = count(({ killed }) => killed.length > 0);
    assert.ok(killed >= 0.95 * SEEDS, `${killed} of ${SEEDS} seeds kill`);
    assert.ok(count(({ killed }) => killed.length === 2) >= 2, 'two at once');
    assert.ok(count(({ killedBroker }) => killedBroker) >= 3, 'the broker');
    assert.ok(count(({ killed, killedBroker }) => killed.length > 0 && !killedBroker) >= 3);
  });
});
