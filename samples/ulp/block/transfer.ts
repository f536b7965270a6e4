/**
 * The two ways of bytes between a remote consumer and a disk, in chunks of the pool: pull, then do;
 * and do, then push. While a chunk is on the wire the disk is at the next one, if the pool has two
 * chunks to spare; with one it goes chunk by chunk.
 */
import type { AbortFlag } from './backend.js';
import type { BufferPool, Lease } from './buffer-pool.js';

/**
 * Works on the bytes of the transfer from `offset` on; they are its own until it resolves, as is
 * the scratch memory, which is as long if it was asked for, else empty.
 */
export type ChunkWork = (offset: number, bytes: Uint8Array, scratch: Uint8Array) => Promise<void>;

export interface Transfer {
  readonly pool: BufferPool;
  /** Bytes in all; nothing happens for 0. */
  readonly bytes: number;
  /** Parts are multiples of it, but for the last one: a block. Default 1. */
  readonly unitBytes?: number;
  /** True to keep half of each chunk for the work itself. Default false. */
  readonly scratch?: boolean;
  /** The borrower of the chunks: see `BufferPool`. Default: one borrower for all transfers. */
  readonly borrower?: string;
  /** Ends the waiting for a chunk; no work begins any more. */
  readonly signal: AbortFlag;
}

const NOTHING = new Uint8Array(0);

/**
 * First one work, then the other on every part. Each work sees ascending offsets, and is at one
 * part at a time. @throws what the works throw, and the reason of the signal; by then no chunk is
 * in use any more
 */
export async function inChunks(
  transfer: Transfer,
  first: ChunkWork,
  second: ChunkWork,
): Promise<void> {
  const { pool, bytes, unitBytes = 1, scratch = false } = transfer;
  const { borrower, signal } = transfer;
  const share = scratch ? pool.chunkBytes / 2 : pool.chunkBytes;
  const partBytes = share - (share % unitBytes);
  if (bytes <= partBytes) return inOneChunk(transfer, partBytes, first, second);
  let last: Promise<void> = Promise.resolve();
  try {
    for (let offset = 0; offset < bytes; offset += partBytes) {
      const lease = await nextLease(pool, last, signal, borrower);
      const part = lease.bytes.subarray(0, Math.min(partBytes, bytes - offset));
      const spare = lease.bytes.subarray(partBytes, scratch ? partBytes + part.length : partBytes);
      try {
        signal.throwIfAborted();
        await first(offset, part, spare);
        await last;
        signal.throwIfAborted();
      } catch (error) {
        lease.release();
        throw error;
      }
      last = second(offset, part, spare).finally(() => lease.release());
      // It is waited for below, whatever happens meanwhile.
      last.catch(() => {});
    }
  } finally {
    await last.catch(() => {});
  }
  await last;
}

/** The common case of one chunk: there is nothing to overlap, so less state is needed. */
async function inOneChunk(
  { pool, bytes, scratch = false, borrower, signal }: Transfer,
  partBytes: number,
  first: ChunkWork,
  second: ChunkWork,
): Promise<void> {
  if (bytes === 0) return;
  signal.throwIfAborted();
  const lease = pool.tryLease(borrower) ?? (await pool.lease(signal, borrower));
  try {
    const part = lease.bytes.subarray(0, bytes);
    const spare = scratch ? lease.bytes.subarray(partBytes, partBytes + bytes) : NOTHING;
    signal.throwIfAborted();
    await first(0, part, spare);
    signal.throwIfAborted();
    await second(0, part, spare);
  } finally {
    lease.release();
  }
}

/** A second chunk only if it can be had at once: what holds one must not wait for another. */
async function nextLease(
  pool: BufferPool,
  last: Promise<void>,
  signal: AbortFlag,
  borrower: string | undefined,
): Promise<Lease> {
  signal.throwIfAborted();
  const spare = pool.tryLease(borrower);
  if (spare !== undefined) return spare;
  await last;
  return pool.lease(signal, borrower);
}
