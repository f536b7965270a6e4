// Over iSER: what was answered after a flush survives a loss of power, at points of a seeded mix.
// crash.long.test.ts takes every point.

import assert from 'node:assert/strict';
import { crash } from './crash.js';

describe('iSER over a disk that loses power, in virtual time', () => {
  it('keeps what was flushed', async () => {
    const steps = await crash(1);
    assert.ok(steps > 30, `${steps} steps`);
    for (let lostAtStep = 1; lostAtStep <= steps; lostAtStep += 9) await crash(1, { lostAtStep });
  });

  it('finds that FUA is ignored', async () => {
    const found = async (): Promise<void> => {
      for (let seed = 1; seed <= 20; seed++) await crash(seed, { plantedBug: 'fua is ignored' });
    };
    await assert.rejects(found(), { message: /^block \d+ has \d+, may have / });
  });
});
