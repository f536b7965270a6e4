import assert from 'node:assert/strict';
import { SlotsSimulation } from './slots-simulation.js';

/** Runs, each with a kill at every message until no message is left to kill at. */
const SEEDS = [1, 2, 3, 4, 5, 6];
const FRESH_RUNS = 250;

async function killed(seed: number, killAt: number): Promise<readonly string[]> {
  try {
    return (await new SlotsSimulation({ seed, killAt }).run()).killed;
  } catch (error) {
    throw new Error(`seed ${seed}, killed at message ${killAt}`, { cause: error });
  }
}

describe('simulator, processes that share an address (long)', function () {
  this.timeout(900_000);

  for (const seed of SEEDS) {
    it(`finds nothing at any message of seed ${seed}`, async () => {
      const { messages } = await new SlotsSimulation({ seed }).run();
      let kills = 0;
      for (let killAt = 1; killAt <= messages; killAt++) {
        kills += (await killed(seed, killAt)).length;
      }
      assert.ok(kills >= 50, `${kills} processes were killed`);
    });
  }

  const fresh = Date.now() % 2 ** 32;
  it(`finds nothing with fresh seeds from ${fresh} on`, async () => {
    for (let i = 0; i < FRESH_RUNS; i++) await killed(fresh + i, 1 + ((i * 37) % 100));
  });
});
