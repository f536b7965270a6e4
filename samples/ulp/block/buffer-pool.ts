/** Registered memory in chunks, which commands borrow one after the other. */
import type { AbortFlag } from './backend.js';

/** A chunk of the pool; it belongs to the borrower until `release`. */
export interface Lease {
  readonly bytes: Uint8Array;
  /** Offset of `bytes` in the memory of the pool. */
  readonly offset: number;
  /** Returns the chunk; a second call does nothing. */
  release(): void;
}

export interface BufferPoolOptions {
  /** The memory of the pool; a data mover registers it once, as a whole. */
  readonly memory: Uint8Array;
  /** Bytes of a chunk: a multiple of 4096, at least 8192, at most the memory. */
  readonly chunkBytes: number;
  /** Number of borrowers for whom a chunk is reserved, within half of the memory. Default 1. */
  readonly borrowers?: number;
}

/** Receives a chunk. */
type Waiter = (lease: Lease) => void;

/** The chunks that a borrower holds, and those it waits for. */
interface Account {
  held: number;
  readonly waiters: Set<Waiter>;
}

/** Empty accounts to keep: creating one costs more than a lease. */
const IDLE_ACCOUNTS = 256;

/**
 * Lends chunks. Its memory limits what commands in progress can hold. A borrower that holds a chunk
 * gets another one only if a chunk is left for each of the `borrowers` that hold none. Of those
 * that wait, the one that holds least is served first: so a borrower that returns nothing only
 * stops itself.
 */
export class BufferPool {
  readonly memory: Uint8Array;
  readonly chunkBytes: number;
  readonly chunkCount: number;
  private readonly borrowers: number;
  private readonly free: number[];
  private readonly accounts = new Map<string, Account>();
  /**
   * Accounts with waiters. Of two that hold equally many chunks, the one served last comes later.
   */
  private readonly waiting = new Set<Account>();
  /** Accounts that hold a chunk. */
  private holders = 0;

  /** @throws RangeError for memory smaller than a chunk, and for chunks that are not whole pages */
  constructor({ memory, chunkBytes, borrowers = 1 }: BufferPoolOptions) {
    if (!Number.isSafeInteger(chunkBytes) || chunkBytes < 8192 || chunkBytes % 4096 !== 0) {
      throw new RangeError(`A chunk is a multiple of 4096 bytes, at least 8192, not ${chunkBytes}`);
    }
    this.memory = memory;
    this.chunkBytes = chunkBytes;
    this.chunkCount = Math.floor(memory.length / chunkBytes);
    if (this.chunkCount === 0) {
      throw new RangeError(`${memory.length} bytes of memory hold no chunk of ${chunkBytes}`);
    }
    this.borrowers = Math.min(borrowers, Math.floor(this.chunkCount / 2));
    this.free = Array.from({ length: this.chunkCount }, (_, i) => i * chunkBytes);
  }

  /** Number of free chunks. */
  get freeCount(): number {
    return this.free.length;
  }

  /**
   * A chunk, if the borrower may have one now and waits for none.
   * @param borrower any name; its chunks are counted under it
   */
  tryLease(borrower = ''): Lease | undefined {
    const account = this.accountOf(borrower);
    return account.waiters.size === 0 && this.mayTake(account) ? this.lend(account) : undefined;
  }

  /**
   * A chunk, as soon as the borrower may have one. A holder of a chunk must not wait for another,
   * or all may wait for each other: see `tryLease`.
   * @throws the reason of the signal, if that fires first
   */
  async lease(signal: AbortFlag, borrower = ''): Promise<Lease> {
    signal.throwIfAborted();
    const lease = this.tryLease(borrower);
    if (lease !== undefined) return lease;
    const account = this.accountOf(borrower);
    return new Promise((resolve, reject) => {
      const onAbort = (): void => {
        account.waiters.delete(waiter);
        if (account.waiters.size === 0) this.waiting.delete(account);
        reject(signal.reason ?? new Error('the wait was aborted'));
      };
      const waiter: Waiter = (given) => {
        signal.removeEventListener('abort', onAbort);
        resolve(given);
      };
      account.waiters.add(waiter);
      this.waiting.add(account);
      signal.addEventListener('abort', onAbort, { once: true });
    });
  }

  private mayTake({ held }: Account): boolean {
    const kept = held === 0 ? 0 : Math.max(0, this.borrowers - this.holders);
    return this.free.length > kept;
  }

  private lend(account: Account): Lease {
    const offset = this.free.pop()!;
    if (account.held++ === 0) this.holders++;
    let isLent = true;
    return {
      offset,
      bytes: this.memory.subarray(offset, offset + this.chunkBytes),
      release: () => {
        if (!isLent) return;
        isLent = false;
        this.free.push(offset);
        if (--account.held === 0) this.holders--;
        this.serve();
      },
    };
  }

  /** Passes returned chunks on. */
  private serve(): void {
    let least: Account | undefined;
    for (const account of this.waiting) {
      if (account.held < (least?.held ?? Infinity)) least = account;
    }
    if (least === undefined || !this.mayTake(least)) return;
    const [waiter] = least.waiters;
    least.waiters.delete(waiter!);
    this.waiting.delete(least);
    if (least.waiters.size > 0) this.waiting.add(least);
    waiter!(this.lend(least));
  }

  private accountOf(borrower: string): Account {
    const known = this.accounts.get(borrower);
    if (known !== undefined) return known;
    if (this.accounts.size >= IDLE_ACCOUNTS) this.forgetIdle();
    const account = { held: 0, waiters: new Set<Waiter>() };
    this.accounts.set(borrower, account);
    return account;
  }

  private forgetIdle(): void {
    for (const [borrower, { held, waiters }] of this.accounts) {
      if (held === 0 && waiters.size === 0) this.accounts.delete(borrower);
    }
  }
}
