/** The contract of block storage: of every backend and wrapper, with the checks that all share. */
import { BlockError } from './block-error.js';

export type BlockBytes = 512 | 4096;

/** A run of blocks in the same state. */
export interface Extent {
  /** At least 1. */
  readonly blocks: bigint;
  /** False if the blocks take no space: they read as zeroes. */
  readonly isMapped: boolean;
}

export interface WriteOptions {
  /** Force unit access: the bytes are durable when the promise resolves. */
  readonly fua?: boolean;
}

/**
 * A random-access store of blocks. Lengths are multiples of `blockBytes`. Calls may overlap; the
 * result of overlapping calls on the same block is undefined, block by block. Every method only
 * rejects with `BlockError`. Reads see the effect of a write, discard or zeroing as soon as its
 * promise has resolved. It is durable after a later `flush` (or with `fua`, when the write
 * resolves).
 */
export interface BlockBackend {
  readonly blockBytes: BlockBytes;
  readonly blockCount: bigint;
  readonly isReadOnly: boolean;
  /**
   * Identifies this medium: 1 to 36 characters of ASCII, the same each time that it is served.
   * Initiators take two disks with the same serial number for two paths to one disk.
   */
  readonly serial: string;
  /** Fills `into` with blocks from `lba` on. */
  read(lba: bigint, into: Uint8Array): Promise<void>;
  /** Writes `from`, which must not change until the promise resolves. */
  write(lba: bigint, from: Uint8Array, options?: WriteOptions): Promise<void>;
  /** Makes everything durable that was written, discarded or zeroed before this call. */
  flush(): Promise<void>;
  /** Makes the blocks read as zeroes, and frees their space if the backend can. */
  discard(lba: bigint, blocks: bigint): Promise<void>;
  /** Makes the blocks read as zeroes, and keeps their space reserved if the backend can. */
  writeZeroes(lba: bigint, blocks: bigint, options?: WriteOptions): Promise<void>;
  /** The state of the blocks from `lba` on; mapped if it is unknown. */
  extentAt(lba: bigint): Extent;
  /** Flushes, unless read-only, and closes. A second call does nothing. */
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

/** The part of AbortSignal that commands use; an AbortSignal fits. */
export interface AbortFlag {
  readonly aborted: boolean;
  /** The reason, once it is aborted. */
  readonly reason: Error | undefined;
  /** @throws the reason, once it is aborted */
  throwIfAborted(): void;
  /** Listeners hear of the abort once. */
  addEventListener(type: 'abort', listener: () => void, options?: { once?: boolean }): void;
  removeEventListener(type: 'abort', listener: () => void): void;
}

/** The part of AbortController that commands use; an AbortController fits. */
export interface Abort {
  readonly signal: AbortFlag;
  abort(reason?: Error): void;
}
