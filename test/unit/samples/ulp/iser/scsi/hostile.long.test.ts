// As hostile.test.ts, by the hundred thousand.

import assert from 'node:assert/strict';
import { sendHostileCommands } from './hostile.js';

describe('SCSI: hostile commands, many', () => {
  it('are answered, and change nothing that they do not name', async () => {
    const { commands, good } = await sendHostileCommands(2, 100_000);
    assert.equal(commands, 100_000);
    assert.ok(good.size > 30, `${good.size} operation codes were good`);
  });
});
