/**
 * A disk in memory with a volatile write cache. On a power loss, each block that neither a flush
 * nor FUA has made durable is kept, lost or torn, in any order, chosen by a seed.
 */
import { leaveUnhandled } from 'dapl/spi';
import {
  type BlockBackend,
  type BlockBytes,
  checkExtent,
  checkTransfer,
  type Extent,
  geometryOf,
  type WriteOptions,
} from './backend.js';
import { BlockError } from './block-error.js';
import { MemoryBackend, type MemoryBackendOptions } from './memory-backend.js';

/** Bugs that a test plants to check that it finds them. */
export type PlantedBug =
  | 'fua is ignored'
  | 'flush forgets the last write'
  /** It is performed before the next call. */
  | 'flush is acknowledged early';

export interface PowerLossOptions extends MemoryBackendOptions {
  /** Returns 0 up to 1, 1 excluded: decides the fate of each block that was not durable. */
  readonly random: () => number;
  /**
   * Bytes of a block that are written atomically; default: the whole block. Smaller values tear
   * blocks, which drives promise not to do.
   */
  readonly atomicBytes?: number;
  /**
   * The power fails at this step, counted from 1: each block that is written or settled is a step.
   */
  readonly lostAtStep?: number;
  readonly plantedBug?: PlantedBug;
}

export class PowerLossBackend implements BlockBackend {
  readonly blockBytes: BlockBytes;
  readonly blockCount: bigint;
  readonly isReadOnly = false;
  readonly serial: string;
  private readonly durable: MemoryBackend;
  /** Contents of blocks that are newer than the durable ones, oldest first. */
  private volatile = new Map<bigint, Uint8Array[]>();
  private isPowered = true;
  private steps = 0;
  /** Blocks of a flush that was acknowledged early. */
  private owed: readonly bigint[] = [];

  constructor(private readonly options: PowerLossOptions) {
    const { sizeBytes, blockBytes = 512 } = options;
    const geometry = geometryOf(sizeBytes, blockBytes);
    this.blockBytes = geometry.blockBytes;
    this.blockCount = geometry.blockCount;
    this.durable = new MemoryBackend(options);
    this.serial = this.durable.serial;
  }

  /** Number of blocks that a power loss may change. */
  get volatileBlocks(): number {
    return this.volatile.size;
  }

  /** Number of steps so far: each is a crash point for `lostAtStep`. */
  get stepCount(): number {
    return this.steps;
  }

  async read(lba: bigint, into: Uint8Array): Promise<void> {
    this.check();
    checkTransfer(this, lba, into);
    await this.durable.read(lba, into);
    for (let at = 0; at < into.length; at += this.blockBytes) {
      const newest = this.volatile.get(lba + BigInt(at / this.blockBytes))?.at(-1);
      if (newest !== undefined) into.set(newest, at);
    }
  }

  async write(lba: bigint, from: Uint8Array, { fua = false }: WriteOptions = {}): Promise<void> {
    this.check();
    checkTransfer(this, lba, from);
    const blocks = BigInt(from.length / this.blockBytes);
    for (let i = 0n; i < blocks; i++) {
      const at = Number(i) * this.blockBytes;
      this.step();
      this.keep(lba + i, from.slice(at, at + this.blockBytes));
    }
    if (!fua || this.options.plantedBug === 'fua is ignored') return;
    this.settle([...range(lba, blocks)]);
  }

  async flush(): Promise<void> {
    this.check();
    const { plantedBug } = this.options;
    const all = [...this.volatile.keys()];
    if (plantedBug === 'flush forgets the last write') all.pop();
    if (plantedBug === 'flush is acknowledged early') this.owed = all;
    else this.settle(all);
  }

  async discard(lba: bigint, blocks: bigint): Promise<void> {
    await this.writeZeroes(lba, blocks);
  }

  async writeZeroes(lba: bigint, blocks: bigint, options?: WriteOptions): Promise<void> {
    checkExtent(this, lba, blocks);
    await this.write(lba, new Uint8Array(Number(blocks) * this.blockBytes), options);
  }

  extentAt(lba: bigint): Extent {
    checkExtent(this, lba, 1n);
    return { isMapped: true, blocks: this.blockCount - lba };
  }

  async close(): Promise<void> {
    if (!this.isPowered) return;
    await this.flush();
    this.isPowered = false;
  }

  /** Cuts the power: all calls fail, including those in progress, until `restorePower`. */
  losePower(): void {
    this.isPowered = false;
    const lost = this.volatile;
    this.volatile = new Map();
    for (const [lba, versions] of lost) this.settleByChance(lba, versions);
  }

  restorePower(): void {
    this.isPowered = true;
  }

  private step(): void {
    const { owed } = this;
    this.owed = [];
    this.settle(owed);
    this.steps++;
    if (this.steps === this.options.lostAtStep) this.losePower();
    this.check();
  }

  private check(): void {
    if (!this.isPowered) throw new BlockError('gone', 'The disk has no power');
  }

  private keep(lba: bigint, block: Uint8Array): void {
    const versions = this.volatile.get(lba) ?? [];
    // The block that was written last comes last.
    this.volatile.delete(lba);
    this.volatile.set(lba, [...versions, block]);
  }

  private settle(lbas: readonly bigint[]): void {
    for (const lba of lbas) {
      this.step();
      const newest = this.volatile.get(lba)?.at(-1);
      this.volatile.delete(lba);
      if (newest !== undefined) this.store(lba, newest);
    }
  }

  /** Stores a block. Memory answers at once: no other call finds blocks that are half settled. */
  private store(lba: bigint, block: Uint8Array): void {
    leaveUnhandled(this.durable.write(lba, block));
  }

  /** Gives each atomic part of a block one of the versions, or keeps the durable one. */
  private settleByChance(lba: bigint, versions: readonly Uint8Array[]): void {
    const { random, atomicBytes = this.blockBytes } = this.options;
    const block = new Uint8Array(this.blockBytes);
    leaveUnhandled(this.durable.read(lba, block));
    for (let at = 0; at < block.length; at += atomicBytes) {
      const version = versions[Math.floor(random() * (versions.length + 1))];
      if (version !== undefined) block.set(version.subarray(at, at + atomicBytes), at);
    }
    this.store(lba, block);
  }
}

function* range(first: bigint, count: bigint): Generator<bigint> {
  for (let i = 0n; i < count; i++) yield first + i;
}
