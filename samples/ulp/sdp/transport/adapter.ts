/**
 * State that the connections of one adapter share: a zone, buffers, and the batch of completions.
 */
import { EventBatch, type Ia, type Pz } from 'dapl';
import { BufferPool, type Lease } from 'dapl/flow';

const BATCH = 64;
const adapters = new WeakMap<Ia, Adapter>();

export class Adapter {
  readonly pz: Pz;
  readonly batch = new EventBatch(BATCH);
  private readonly pools = new Map<number, BufferPool>();
  private users = 0;

  private constructor(readonly ia: Ia) {
    this.pz = ia.createPz();
  }

  /** Joins the adapter; each user calls `leave` once. @throws DatError as `ia.createPz` */
  static join(ia: Ia): Adapter {
    let adapter = adapters.get(ia);
    if (adapter === undefined || adapter.pz.isFreed) {
      adapter = new Adapter(ia);
      adapters.set(ia, adapter);
    }
    adapter.users++;
    return adapter;
  }

  /** A registered buffer. @throws FlowError DAT_INSUFFICIENT_RESOURCES */
  take(bytes: number): Lease {
    let pool = this.pools.get(bytes);
    if (pool === undefined) {
      pool = new BufferPool({ pz: this.pz, bufferBytes: bytes });
      this.pools.set(bytes, pool);
    }
    const lease = pool.tryTake();
    if (lease === undefined) throw new RangeError(`no buffer of ${bytes} bytes is left`);
    return lease;
  }

  leave(): void {
    if (--this.users > 0) return;
    if (adapters.get(this.ia) === this) adapters.delete(this.ia);
    // If the adapter is closed, its zones and regions are freed already.
    if (this.pz.isFreed || this.ia.isFreed) return;
    for (const pool of this.pools.values()) pool.close();
    this.pz.free();
  }
}
