// Whatever a CDB says: a status with the right sense, and no block changes that was not named.

import assert from 'node:assert/strict';
import { sendHostileCommands } from './hostile.js';

describe('SCSI: hostile commands', () => {
  it('are answered, and change nothing that they do not name', async () => {
    const { good, keys, changes } = await sendHostileCommands(1, 4000);
    assert.ok(good.size > 25, `${good.size} operation codes were good`);
    assert.ok(keys.has(5) && keys.has(0xe), [...keys].join());
    assert.ok(changes > 50, `${changes} changes`);
  });
});
