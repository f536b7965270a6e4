/**
 * State that the connections of one adapter share: a zone, the batch for reading completions, and
 * the limit on bytes in flight.
 */
import { EventBatch, type Ia, type Pz } from 'dapl';
import { Share } from './share.js';

const BATCH = 64;
const adapters = new WeakMap<Ia, Adapter>();

export class Adapter {
  readonly pz: Pz;
  readonly batch = new EventBatch(BATCH);
  readonly share = new Share();
  private users = 0;

  private constructor(readonly ia: Ia) {
    this.pz = ia.createPz();
  }

  /** Joins the adapter; each user calls `leave` once. @throws DatError as `ia.createPz` */
  static join(ia: Ia): Adapter {
    let adapter = adapters.get(ia);
    if (adapter === undefined) {
      adapter = new Adapter(ia);
      adapters.set(ia, adapter);
    }
    adapter.users++;
    return adapter;
  }

  leave(): void {
    if (--this.users > 0) return;
    adapters.delete(this.ia);
    // If the adapter is closed, its zones are freed already.
    if (!this.pz.isFreed) this.pz.free();
  }
}
