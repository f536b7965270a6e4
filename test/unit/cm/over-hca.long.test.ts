/** Connections over a bad network, on the software HCA: many seeds. */
import { endUnderFaults } from '../../support/cm-hca-pair.js';

const SEEDS = 200;
const SEEDS_PER_TEST = 20;

describe('CM over the software HCA, over a bad network', () => {
  for (let first = 1; first <= SEEDS; first += SEEDS_PER_TEST) {
    const last = first + SEEDS_PER_TEST - 1;
    it(`ends in a defined way with the seeds ${first} to ${last}`, async () => {
      for (let seed = first; seed <= last; seed++) await endUnderFaults(seed);
    });
  }
});
