/** Registered memory in chunks, lent to one command after the other. */
import type { AbortFlag } from './abort.js';

/** A chunk of the pool, the borrower's until `release`. */
export interface Lease {
  readonly bytes: Uint8Array;
  /** Where `bytes` begin in the memory of the pool. */
  readonly offset: number;
  /** Gives the chunk back, once; a second call does nothing. */
  release(): void;
}

export interface BufferPoolOptions {
  /** The memory that is lent; a data mover registers it once, as a whole. */
  readonly memory: Uint8Array;
  /** Bytes of a chunk: a multiple of 4096, at least 8192, at most the memory. */
  readonly chunkBytes: number;
}

/** Takes a chunk over. */
type Waiter = (lease: Lease) => void;

/** Lends chunks, first come first served. Its memory bounds what commands in progress hold. */
export class BufferPool {
  readonly memory: Uint8Array;
  readonly chunkBytes: number;
  readonly chunkCount: number;
  private readonly free: number[];
  private readonly waiters = new Set<Waiter>();

  /** @throws RangeError for memory that holds no chunk, and for chunks of no whole pages */
  constructor({ memory, chunkBytes }: BufferPoolOptions) {
    if (!Number.isSafeInteger(chunkBytes) || chunkBytes < 8192 || chunkBytes % 4096 !== 0) {
      throw new RangeError(`A chunk is a multiple of 4096 bytes, at least 8192, not ${chunkBytes}`);
    }
    this.memory = memory;
    this.chunkBytes = chunkBytes;
    this.chunkCount = Math.floor(memory.length / chunkBytes);
    if (this.chunkCount === 0) {
      throw new RangeError(`${memory.length} bytes of memory hold no chunk of ${chunkBytes}`);
    }
    this.free = Array.from({ length: this.chunkCount }, (_, i) => i * chunkBytes);
  }

  /** Chunks that are not lent. */
  get freeCount(): number {
    return this.free.length;
  }

  /** A chunk, if one is free and nothing waits for it. */
  tryLease(): Lease | undefined {
    if (this.waiters.size > 0) return undefined;
    const offset = this.free.pop();
    return offset === undefined ? undefined : this.lend(offset);
  }

  /**
   * A chunk, as soon as there is one. What holds a chunk must not wait for another, or all may wait
   * for each other: see `tryLease`.
   * @throws the reason of the signal, if that is first
   */
  async lease(signal: AbortFlag): Promise<Lease> {
    signal.throwIfAborted();
    const lease = this.tryLease();
    if (lease !== undefined) return lease;
    return new Promise((resolve, reject) => {
      const onAbort = (): void => {
        this.waiters.delete(waiter);
        reject(signal.reason ?? new Error('the wait was aborted'));
      };
      const waiter: Waiter = (given) => {
        signal.removeEventListener('abort', onAbort);
        resolve(given);
      };
      this.waiters.add(waiter);
      signal.addEventListener('abort', onAbort, { once: true });
    });
  }

  private lend(offset: number): Lease {
    let isLent = true;
    return {
      offset,
      bytes: this.memory.subarray(offset, offset + this.chunkBytes),
      release: () => {
        if (!isLent) return;
        isLent = false;
        this.takeBack(offset);
      },
    };
  }

  private takeBack(offset: number): void {
    const [next] = this.waiters;
    if (next === undefined) {
      this.free.push(offset);
      return;
    }
    this.waiters.delete(next);
    next(this.lend(offset));
  }
}
