/**
 * Initiator and target over iSER on a simulated fabric, in virtual time, with a disk that loses
 * power at a point of the caller's choice. Afterwards the target is started anew over what is left
 * of the disk, and a new session reads all of it.
 */
import assert from 'node:assert/strict';
import { type Ia, openIa } from 'dapl';
import { Fabric, mock } from 'dapl/providers/mock';
import { type PlantedBug, PowerLossBackend } from '../../../../../../samples/ulp/block/index.js';
import {
  type Disk,
  IscsiError,
  IscsiTarget,
  openDisk,
} from '../../../../../../samples/ulp/iser/index.js';
import { SENSE_KEY } from '../../../../../../samples/ulp/iser/wire/index.js';
import { type DiskUnderTest, DurabilityModel, PowerLost, runMix } from '../../block/durability.js';
import { randomOf } from '../../block/random.js';

const TARGET = '10.0.0.1';
const INITIATOR = '10.0.0.2';
const NAME = 'iqn.2026-01.example:crash';
const BLOCKS = 48;
const BLOCK_BYTES = 512;

export interface CrashOptions {
  /** Without it the power goes when the mix has ended. */
  readonly lostAtStep?: number;
  readonly plantedBug?: PlantedBug;
  readonly lossPercent?: number;
  /** Requests under way at a time; default 3. */
  readonly lanes?: number;
}

class RemoteDisk implements DiskUnderTest {
  readonly blockBytes = BLOCK_BYTES;

  constructor(private readonly disk: Disk) {}

  write(lba: number, data: Uint8Array, fua: boolean): Promise<void> {
    return attempt(this.disk.write(lba, data, { fua }));
  }

  flush(): Promise<void> {
    return attempt(this.disk.flush());
  }

  unmap(lba: number, blocks: number): Promise<void> {
    return attempt(this.disk.unmap(lba, BigInt(blocks)));
  }

  async compareAndWrite(lba: number, expected: Uint8Array, data: Uint8Array): Promise<void> {
    let isWritten = false;
    const run = this.disk.compareAndWrite(lba, expected, data);
    await attempt(run.then((outcome) => void (isWritten = outcome)));
    assert.ok(isWritten, `block ${lba} is not what was written`);
  }
}

/** A disk without power answers with a hardware error. */
async function attempt(work: Promise<void>): Promise<void> {
  try {
    await work;
  } catch (error) {
    const isLoss = error instanceof IscsiError && error.sense?.key === SENSE_KEY.HARDWARE_ERROR;
    throw isLoss ? new PowerLost() : error;
  }
}

class World {
  readonly fabric: Fabric;

  constructor(seed: number, lossPercent: number) {
    this.fabric = new Fabric({ seed, autoRun: true, link: { lossPercent } });
  }

  open(address: string): Promise<Ia> {
    return openIa(mock({ fabric: this.fabric, address }));
  }

  readonly after = (ms: number, run: () => void): (() => void) => {
    let isCancelled = false;
    const { clock } = this.fabric;
    clock.at(clock.now() + ms * 1000, () => {
      if (!isCancelled) run();
    });
    return () => (isCancelled = true);
  };

  /** A session of a new target, until the work has been done. */
  async withDisk(
    backend: PowerLossBackend,
    ias: readonly [target: Ia, initiator: Ia],
    work: (disk: Disk) => Promise<void>,
  ): Promise<void> {
    const luns = new Map([[0, backend]]);
    const target = new IscsiTarget({ name: NAME, luns, alarm: this.after, keepAliveMs: 0 });
    target.listenIser(ias[0]);
    const { clock } = this.fabric;
    const random = randomOf(1);
    const timing = { nowMs: () => clock.now() / 1000, after: this.after, random };
    const disk = await openDisk({ target: NAME, address: TARGET, ia: ias[1], timing });
    try {
      await work(disk);
    } finally {
      await disk.close();
      await target.close(0);
    }
  }
}

/** @returns the steps of the disk: points at which its power may go */
export async function crash(seed: number, options: CrashOptions = {}): Promise<number> {
  const { lossPercent = 0, lanes = 3, ...loss } = options;
  const random = randomOf(seed + 1_000_000);
  const backend = new PowerLossBackend({ sizeBytes: BLOCKS * BLOCK_BYTES, random, ...loss });
  const world = new World(seed, lossPercent);
  const ias = [await world.open(TARGET), await world.open(INITIATOR)] as const;
  const model = new DurabilityModel(BLOCKS);
  await world.withDisk(backend, ias, (disk) => {
    const mix = { random: randomOf(seed), blocks: BLOCKS, requests: 24 / lanes, lanes };
    return runMix(new RemoteDisk(disk), model, mix);
  });
  const steps = backend.stepCount;
  if (loss.lostAtStep === undefined) backend.losePower();
  backend.restorePower();
  await world.withDisk(backend, ias, async (disk) => {
    const all = new Uint8Array(BLOCKS * BLOCK_BYTES);
    await disk.read(0, all);
    for (let lba = 0; lba < BLOCKS; lba++) {
      model.check(lba, all.subarray(lba * BLOCK_BYTES, (lba + 1) * BLOCK_BYTES));
    }
  });
  await Promise.all(ias.map((ia) => ia.close('graceful')));
  return steps;
}
