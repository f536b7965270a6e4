// At every point at which the power may go, nothing that was answered after a flush is lost, and
// what is there is what was written. Mistakes that are planted are found.

import assert from 'node:assert/strict';
import {
  type PlantedBug,
  PowerLossBackend,
  type PowerLossOptions,
} from '../../../../../../samples/ulp/block/index.js';
import {
  type DiskUnderTest,
  DurabilityModel,
  type MixOptions,
  PowerLost,
  runMix,
} from '../../block/durability.js';
import { randomOf } from '../../block/random.js';
import { cdb, cdb16, type CommandOptions, Scene } from './scene.js';

const BLOCKS = 64;
const BLOCK_BYTES = 512;
const FUA = 0x08;

class ScsiDisk implements DiskUnderTest {
  readonly blockBytes = BLOCK_BYTES;

  constructor(private readonly scene: Scene) {}

  write(lba: number, data: Uint8Array, fua: boolean): Promise<void> {
    const bytes = cdb16(0x8a, lba, data.length / BLOCK_BYTES, fua ? FUA : 0);
    return this.run(bytes, { out: data });
  }

  flush(): Promise<void> {
    return this.run(cdb16(0x91, 0, 0));
  }

  unmap(lba: number, blocks: number): Promise<void> {
    // WRITE SAME without data unmaps as well.
    return this.run(cdb16(0x93, lba, blocks, 0x09));
  }

  compareAndWrite(lba: number, expected: Uint8Array, data: Uint8Array): Promise<void> {
    const bytes = cdb16(0x89, lba, 0);
    bytes[13] = 1;
    return this.run(bytes, { out: Buffer.concat([expected, data]) });
  }

  private async run(bytes: Uint8Array, options: CommandOptions = {}): Promise<void> {
    const { status, sense } = await this.scene.run(bytes, options);
    if (status === 0) return;
    // INTERNAL TARGET FAILURE is what a backend without power comes to.
    if (sense?.key === 4 && sense.asc === 0x44) throw new PowerLost();
    assert.fail(`status ${status}, ${JSON.stringify(sense)}`);
  }
}

interface Run extends Partial<MixOptions> {
  readonly lostAtStep?: number;
  readonly plantedBug?: PlantedBug;
}

/** One run of a seed, with its crash and the look at the disk afterwards. @returns its steps */
async function run(seed: number, { lostAtStep, plantedBug, ...mix }: Run): Promise<number> {
  const options: PowerLossOptions = {
    sizeBytes: BLOCKS * BLOCK_BYTES,
    random: randomOf(seed + 1_000_000),
    ...(lostAtStep !== undefined && { lostAtStep }),
    ...(plantedBug !== undefined && { plantedBug }),
  };
  const backend = new PowerLossBackend(options);
  const scene = new Scene({ backend, chunkBytes: 8192, chunks: 2 });
  if (mix.writeThrough === true) {
    const caching = `00 00 00 00 08 12 ${'00 '.repeat(18).trim()}`;
    await scene.good('15 10 00 00 18 00', { out: cdb(caching) });
  }
  const model = new DurabilityModel(BLOCKS);
  const random = randomOf(seed);
  const size = { random, blocks: BLOCKS, requests: 12, lanes: 3 };
  await runMix(new ScsiDisk(scene), model, { ...size, ...mix });
  if (lostAtStep === undefined) backend.losePower();
  backend.restorePower();
  const block = new Uint8Array(BLOCK_BYTES);
  for (let lba = 0; lba < BLOCKS; lba++) {
    await backend.read(BigInt(lba), block);
    model.check(lba, block);
  }
  return backend.stepCount;
}

/** Every step of a seed. */
async function sweep(seed: number, options: Run = {}): Promise<number> {
  const steps = await run(seed, options);
  for (let lostAtStep = 1; lostAtStep <= steps; lostAtStep++) {
    await run(seed, { ...options, lostAtStep });
  }
  return steps;
}

describe('SCSI over a disk that loses power', () => {
  it('keeps what was flushed, at every point of a mix of commands', async () => {
    let points = 0;
    for (let seed = 1; seed <= 8; seed++) points += await sweep(seed);
    assert.ok(points > 400, `${points} points`);
  });

  it('keeps every write that was answered, without a write cache', async () => {
    for (let seed = 1; seed <= 4; seed++) await sweep(seed, { writeThrough: true });
  });

  const bugs: readonly PlantedBug[] = [
    'fua is ignored',
    'flush forgets the last write',
    'flush is acknowledged early',
  ];
  for (const plantedBug of bugs) {
    it(`finds that ${plantedBug}`, async () => {
      const found = async (): Promise<void> => {
        for (let seed = 1; seed <= 20; seed++) await sweep(seed, { plantedBug });
      };
      await assert.rejects(found(), { message: /^block \d+ has \d+, may have / });
    });
  }
});
