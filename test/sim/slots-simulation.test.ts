import assert from 'node:assert/strict';
import { type SlotsReport, SlotsSimulation } from './slots-simulation.js';

/** A few of the moments that slots-simulation.long.test.ts goes through one by one. */
const SEEDS = 25;

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
      const killAt = 1 + ((seed * 37) % 100);
      try {
        reports.push(await new SlotsSimulation({ seed, killAt }).run());
      } catch (error) {
        throw new Error(`seed ${seed}, killed at message ${killAt}`, { cause: error });
      }
    }
    assert.ok(
      reports.some(({ killedBroker }) => killedBroker),
      'the broker',
    );
    assert.ok(reports.some(({ killed, killedBroker }) => killed.length > 0 && !killedBroker));
  });
});
