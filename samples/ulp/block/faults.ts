/** A wrapper that makes any backend fail by rules, to test how clients react. */
import type { BlockBackend, BlockBytes, Extent, WriteOptions } from './backend.js';
import { BlockError, type BlockFailure } from './block-error.js';

export type BlockCall = 'read' | 'write' | 'flush' | 'discard' | 'writeZeroes';

/** The first rule that applies to a call decides. */
export interface BlockFault {
  /** Calls that it applies to; default: all. */
  readonly calls?: readonly BlockCall[];
  /** Blocks that a call must touch; default: any. With it, flushes are not affected. */
  readonly from?: bigint;
  readonly blocks?: bigint;
  /** The failure of the call; without it, the call is only delayed. */
  readonly failure?: BlockFailure;
  /** The delay before the call: a timer of the caller's, so that time may be virtual. */
  readonly delay?: () => Promise<void>;
  /** Number of calls that it applies to; default: all. */
  readonly times?: number;
}

export class FaultyBackend implements BlockBackend {
  private readonly used = new Map<BlockFault, number>();
  /** Rules; they may be changed at any time. */
  faults: BlockFault[];

  constructor(
    private readonly below: BlockBackend,
    faults: readonly BlockFault[] = [],
  ) {
    this.faults = [...faults];
  }

  get blockBytes(): BlockBytes {
    return this.below.blockBytes;
  }

  get blockCount(): bigint {
    return this.below.blockCount;
  }

  get serial(): string {
    return this.below.serial;
  }

  get isReadOnly(): boolean {
    return this.below.isReadOnly;
  }

  async read(lba: bigint, into: Uint8Array): Promise<void> {
    await this.meet('read', lba, this.blocksOf(into));
    await this.below.read(lba, into);
  }

  async write(lba: bigint, from: Uint8Array, options?: WriteOptions): Promise<void> {
    await this.meet('write', lba, this.blocksOf(from));
    await this.below.write(lba, from, options);
  }

  async flush(): Promise<void> {
    await this.meet('flush');
    await this.below.flush();
  }

  async discard(lba: bigint, blocks: bigint): Promise<void> {
    await this.meet('discard', lba, blocks);
    await this.below.discard(lba, blocks);
  }

  async writeZeroes(lba: bigint, blocks: bigint, options?: WriteOptions): Promise<void> {
    await this.meet('writeZeroes', lba, blocks);
    await this.below.writeZeroes(lba, blocks, options);
  }

  extentAt(lba: bigint): Extent {
    return this.below.extentAt(lba);
  }

  close(): Promise<void> {
    return this.below.close();
  }

  /** Number of blocks; the backend below refuses a length that is no whole number of blocks. */
  private blocksOf({ length }: Uint8Array): bigint {
    return BigInt(Math.ceil(length / this.blockBytes));
  }

  private async meet(call: BlockCall, lba?: bigint, blocks = 0n): Promise<void> {
    const fault = this.faults.find((each) => this.applies(each, call, lba, blocks));
    if (fault === undefined) return;
    this.used.set(fault, (this.used.get(fault) ?? 0) + 1);
    await fault.delay?.();
    if (fault.failure === undefined) return;
    const at = fault.from !== undefined && lba !== undefined && fault.from > lba ? fault.from : lba;
    throw new BlockError(fault.failure, `A fault of the test: ${fault.failure}`, at);
  }

  private applies(
    fault: BlockFault,
    call: BlockCall,
    lba: bigint | undefined,
    blocks: bigint,
  ): boolean {
    const { calls, from, times = Infinity } = fault;
    if ((this.used.get(fault) ?? 0) >= times) return false;
    if (calls !== undefined && !calls.includes(call)) return false;
    if (from === undefined) return true;
    const end = from + (fault.blocks ?? 1n);
    return lba !== undefined && lba < end && from < lba + blocks;
  }
}
