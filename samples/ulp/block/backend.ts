/** Where blocks are kept: the contract of every backend and wrapper, and the checks all share. */
import { BlockError } from './block-error.js';

export type BlockBytes = 512 | 4096;

/** Blocks of one state, from some block on. */
export interface Extent {
  /** At least 1. */
  readonly blocks: bigint;
  /** False where no space is taken: such blocks read as zeroes. */
  readonly isMapped: boolean;
}

export interface WriteOptions {
  /** Force unit access: the bytes are durable when the promise resolves. */
  readonly fua?: boolean;
}

/**
 * A random-access store of blocks. Lengths are multiples of `blockBytes`. Calls may overlap; what
 * calls in progress make of the same blocks is undefined, block by block. Every method rejects with
 * `BlockError` alone. What a write, discard or zeroing left is seen by reads from the moment that
 * its promise resolves, and is durable after a later `flush` (or the `fua` of the write itself).
 */
export interface BlockBackend {
  readonly blockBytes: BlockBytes;
  readonly blockCount: bigint;
  readonly isReadOnly: boolean;
  /**
   * Tells this medium from all others: 1 to 36 characters of ASCII, the same each time that it is
   * served. Initiators take two disks with the same one for two paths to one disk.
   */
  readonly serial: string;
  /** Fills `into` with blocks from `lba` on. */
  read(lba: bigint, into: Uint8Array): Promise<void>;
  /** Keeps `from`, which must not change until the promise resolves. */
  write(lba: bigint, from: Uint8Array, options?: WriteOptions): Promise<void>;
  /** What has been written, discarded and zeroed before this call is durable. */
  flush(): Promise<void>;
  /** The blocks read as zeroes, and take no space where the backend can help it. */
  discard(lba: bigint, blocks: bigint): Promise<void>;
  /** The blocks read as zeroes; space stays reserved where the backend can help it. */
  writeZeroes(lba: bigint, blocks: bigint, options?: WriteOptions): Promise<void>;
  /** The state of the blocks from `lba` on; mapped where it is not known. */
  extentAt(lba: bigint): Extent;
  /** Flushes, unless read-only, and ends. A second call does nothing. */
  close(): Promise<void>;
}

export type BlockGeometry = Pick<BlockBackend, 'blockBytes' | 'blockCount'>;

/** @throws BlockError `out-of-range` naming the blocks and the limit */
export function checkExtent(geometry: BlockGeometry, lba: bigint, blocks: bigint): void {
  if (lba >= 0n && blocks >= 0n && lba + blocks <= geometry.blockCount) return;
  const range = `${blocks} blocks from LBA ${lba}`;
  throw new BlockError('out-of-range', `${range} do not fit ${geometry.blockCount} blocks`, lba);
}

/** @throws BlockError `out-of-range` also for a length that is no multiple of the block size */
export function checkTransfer(geometry: BlockGeometry, lba: bigint, bytes: Uint8Array): void {
  if (bytes.length % geometry.blockBytes !== 0) {
    const what = `${bytes.length} bytes are no multiple of blocks of ${geometry.blockBytes}`;
    throw new BlockError('out-of-range', what, lba);
  }
  checkExtent(geometry, lba, BigInt(bytes.length / geometry.blockBytes));
}

/**
 * @throws RangeError for a block size other than 512 and 4096, and for a size that holds no block
 */
export function geometryOf(sizeBytes: number, blockBytes: number): BlockGeometry {
  if (blockBytes !== 512 && blockBytes !== 4096) {
    throw new RangeError(`Blocks are of 512 or 4096 bytes, not ${blockBytes}`);
  }
  if (!Number.isSafeInteger(sizeBytes) || sizeBytes < blockBytes) {
    throw new RangeError(`${sizeBytes} bytes hold no block of ${blockBytes}`);
  }
  return { blockBytes, blockCount: BigInt(Math.floor(sizeBytes / blockBytes)) };
}
