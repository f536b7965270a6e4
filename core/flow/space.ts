/**
 * The resources that connections of one protection zone share: their buffers, and the batch that
 * reads their completions. Freed with the last connection.
 */
import type { Ia } from '../dat/ia/ia.js';
import type { Pz } from '../dat/memory/pz.js';
import { EventBatch } from '../evd/index.js';
import { BufferPool } from './buffer-pool.js';
import { flowCall } from './flow-error.js';

const BATCH = 64;

/** By zone, or by adapter if the zone is ours. */
const spaces = new WeakMap<object, Space>();

export class Space {
  readonly batch = new EventBatch(BATCH);
  private readonly pools = new Map<number, BufferPool>();
  private users = 0;

  private constructor(
    readonly pz: Pz,
    private readonly key: object,
  ) {}

  /**
   * Joins the space of a zone, or of the adapter's default zone. Each user gives it back by
   * `leave`.
   * @throws FlowError as `ia.createPz`
   */
  static join(operation: string, ia: Ia, pz: Pz | undefined): Space {
    const key = pz ?? ia;
    let space = spaces.get(key);
    if (space === undefined || space.pz.isFreed) {
      space = new Space(pz ?? flowCall(operation, () => ia.createPz()), key);
      spaces.set(key, space);
    }
    space.users++;
    return space;
  }

  /** Buffers of that size. */
  pool(bufferBytes: number): BufferPool {
    let pool = this.pools.get(bufferBytes);
    if (pool === undefined) {
      pool = new BufferPool({ pz: this.pz, bufferBytes });
      this.pools.set(bufferBytes, pool);
    }
    return pool;
  }

  leave(): void {
    if (--this.users > 0) return;
    const { pz, key } = this;
    // The adapter frees its objects itself when it is closed.
    if (pz.ia.isFreed || pz.core.isClosing) return;
    for (const pool of this.pools.values()) pool.close();
    this.pools.clear();
    this.batch.clear();
    // A zone of ours that has objects of the consumer is kept, for the next connection.
    if (key === pz || pz.users > 0) return;
    spaces.delete(key);
    pz.free();
  }
}
