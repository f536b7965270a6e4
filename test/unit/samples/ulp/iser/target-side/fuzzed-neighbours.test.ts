// A session that behaves beside five fuzzed ones. fuzzed-neighbours.long.test.ts takes more seeds.
import assert from 'node:assert/strict';
import { SCSI_STATUS } from './formats.js';
import { besideFuzzers } from './fuzzed-neighbours.js';

describe('iSER target: a session beside fuzzed ones', () => {
  for (let seed = 1; seed <= 4; seed++) {
    it(`has an answer to each of its commands, seed ${seed}`, async () => {
      const { answers, statuses, acts } = await besideFuzzers(seed);
      assert.ok(answers > 1000, `${answers} answers`);
      for (const [name, count] of acts) assert.ok(count > 100, `${name}: ${count} times`);
      const { GOOD, RESERVATION_CONFLICT, TASK_ABORTED } = SCSI_STATUS;
      for (const status of [GOOD, RESERVATION_CONFLICT, TASK_ABORTED]) {
        assert.ok(statuses.has(status), `status ${status} was met`);
      }
    });
  }
});
