import assert from 'node:assert/strict';
import { outages } from './outages.js';

describe('an initiator over iSER in virtual time, by seed', () => {
  for (let seed = 10; seed < 40; seed++) {
    it(`seed ${seed}`, async () => {
      const options = { lossPercent: seed % 3, partitions: seed % 4, kills: (seed >> 2) % 4 };
      const { commands } = await outages(seed, options);
      assert.equal(commands, 150);
    });
  }
});
