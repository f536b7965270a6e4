import assert from 'node:assert/strict';
import { besideFuzzers } from './fuzzed-neighbours.js';

describe('iSER target: a session beside fuzzed ones, by seed', () => {
  for (let seed = 10; seed < 60; seed++) {
    it(`seed ${seed}`, async () => {
      const { answers } = await besideFuzzers(seed);
      assert.ok(answers > 1000, `${answers} answers`);
    });
  }
});
