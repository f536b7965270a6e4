// What is durable survives a loss of power; what is not may be there, not be there, or be torn.

import assert from 'node:assert/strict';
import { PowerLossBackend, type PowerLossOptions } from '../../../../../samples/ulp/block/index.js';
import { behavesAsBackend, pattern } from './backend-suite.js';
import { randomOf } from './random.js';

const make = (options: Partial<PowerLossOptions> = {}): PowerLossBackend =>
  new PowerLossBackend({ sizeBytes: 4 << 20, random: randomOf(1), ...options });

const read = async (backend: PowerLossBackend, lba: bigint): Promise<number> => {
  const into = new Uint8Array(512);
  await backend.read(lba, into);
  return new Set(into).size === 1 ? into[0]! : -1;
};
const block = (value: number): Uint8Array => new Uint8Array(512).fill(value);

behavesAsBackend('wrapper of power loss', async (blockBytes) => {
  const backend = make({ blockBytes });
  return { backend, close: () => backend.close() };
});

describe('wrapper of power loss', () => {
  it('keeps what was flushed or written through', async () => {
    const backend = make();
    await backend.write(1n, block(1));
    await backend.flush();
    await backend.write(2n, block(2), { fua: true });
    backend.losePower();
    await assert.rejects(backend.read(1n, block(0)), { failure: 'gone' });
    backend.restorePower();
    assert.deepEqual([await read(backend, 1n), await read(backend, 2n)], [1, 2]);
  });

  it('forgets, keeps and reorders the rest by chance, block by block', async () => {
    const seen = new Set<number>();
    const pairs = new Set<string>();
    for (let seed = 0; seed < 64; seed++) {
      const backend = make({ random: randomOf(seed) });
      await backend.write(1n, block(9), { fua: true });
      await backend.write(1n, block(1));
      await backend.write(1n, block(2));
      await backend.write(2n, block(3));
      assert.equal(await read(backend, 1n), 2);
      assert.equal(backend.volatileBlocks, 2);
      backend.losePower();
      backend.restorePower();
      assert.equal(backend.volatileBlocks, 0);
      seen.add(await read(backend, 1n));
      pairs.add(`${await read(backend, 1n)} ${await read(backend, 2n)}`);
    }
    assert.deepEqual([...seen].sort(), [1, 2, 9]);
    // The later write of another block may be there without the earlier one.
    assert.ok(pairs.has('9 3') && pairs.has('2 0'), [...pairs].join());
  });

  it('tears blocks only where that is asked for', async () => {
    const torn = async (atomicBytes?: number): Promise<boolean> => {
      for (let seed = 0; seed < 32; seed++) {
        const options = atomicBytes === undefined ? {} : { atomicBytes };
        const backend = make({ random: randomOf(seed), ...options });
        await backend.write(1n, block(1));
        backend.losePower();
        backend.restorePower();
        if ((await read(backend, 1n)) === -1) return true;
      }
      return false;
    };
    assert.equal(await torn(), false);
    assert.equal(await torn(64), true);
  });

  it('loses power within a write or a flush, which then fails', async () => {
    const whole = pattern(4 * 512, 1);
    const count = make();
    await count.write(0n, whole);
    await count.flush();
    assert.equal(count.stepCount, 8);
    for (let lostAtStep = 1; lostAtStep <= 8; lostAtStep++) {
      const backend = make({ lostAtStep });
      const run = async (): Promise<void> => {
        await backend.write(0n, whole);
        await backend.flush();
      };
      await assert.rejects(run(), { failure: 'gone' });
    }
    await assert.rejects(make({ lostAtStep: 5 }).write(0n, whole, { fua: true }), {
      failure: 'gone',
    });
  });

  it('has bugs when they are planted', async () => {
    const ignoring = make({ plantedBug: 'fua is ignored' });
    await ignoring.write(1n, block(1), { fua: true });
    assert.equal(ignoring.volatileBlocks, 1);
    const forgetting = make({ plantedBug: 'flush forgets the last write' });
    await forgetting.write(1n, block(1));
    await forgetting.flush();
    assert.equal(forgetting.volatileBlocks, 1);
  });
});
