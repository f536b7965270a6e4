// As crash.test.ts, at every point, with packets that are lost, and with each planted mistake.

import assert from 'node:assert/strict';
import type { PlantedBug } from '../../../../../../samples/ulp/block/index.js';
import { crash, type CrashOptions } from './crash.js';

async function sweep(seed: number, options: CrashOptions = {}): Promise<number> {
  const steps = await crash(seed, options);
  for (let lostAtStep = 1; lostAtStep <= steps; lostAtStep++) {
    await crash(seed, { ...options, lostAtStep });
  }
  return steps;
}

describe('iSER over a disk that loses power, at every point', () => {
  it('keeps what was flushed', async () => {
    assert.ok((await sweep(2)) > 30);
  });

  it('keeps what was flushed, with packets that are lost', async () => {
    await sweep(3, { lossPercent: 2 });
  });

  const bugs: readonly PlantedBug[] = [
    'flush forgets the last write',
    'flush is acknowledged early',
  ];
  for (const plantedBug of bugs) {
    it(`finds that ${plantedBug}`, async () => {
      // One request at a time: the last write before a flush is then one that was answered.
      const found = async (): Promise<void> => {
        for (let seed = 1; seed <= 10; seed++) await sweep(seed, { plantedBug, lanes: 1 });
      };
      await assert.rejects(found(), { message: /^block \d+ has \d+, may have / });
    });
  }
});
