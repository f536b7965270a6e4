// As simulation.test.ts, with more seeds, and fresh ones, which are printed.
import assert from 'node:assert/strict';
import { randomInt } from 'node:crypto';
import { simulate } from './simulation.js';

const SEEDS = 1000;
const FRESH = 300;

describe('rsocket: simulation, long', () => {
  const run = async (from: number, count: number): Promise<void> => {
    for (let seed = from; seed < from + count; seed++) {
      assert.deepEqual((await simulate(seed)).faults, [], `seed ${seed}`);
    }
  };

  it(`seeds up to ${SEEDS}`, async function () {
    this.timeout(600_000);
    await run(1, SEEDS);
  });

  const fresh = randomInt(2 ** 31);
  it(`${FRESH} fresh seeds from ${fresh} on`, async function () {
    this.timeout(600_000);
    await run(fresh, FRESH);
  });
});
