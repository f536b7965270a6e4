/** A shared receive queue of an interface adapter, for whichever endpoints receive from it. */
import { type Ia, type Lmr, MemPrivileges, type Srq } from '../../core/index.js';
import { SLOT_BYTES } from './dat-posts.js';
import { Violation } from './trace.js';

const DEPTH = 32;
/** More than are posted: those that an ended endpoint had taken are not told. */
const SLOTS = 512;

export class DatShared {
  readonly srq: Srq;
  readonly lmr: Lmr;
  /** Slots by cookie. */
  private readonly posted = new Map<number, number>();
  private next = 0;

  constructor(ia: Ia) {
    const pz = ia.createPz();
    this.srq = ia.createSrq({ pz, maxRecvDtos: DEPTH });
    this.lmr = ia.allocate(SLOTS * SLOT_BYTES, { pz, privileges: MemPrivileges.LOCAL_WRITE });
  }

  post(most: number): void {
    const room = DEPTH - this.srq.query().outstandingDtos;
    for (let i = Math.min(most, room); i > 0; i--) {
      const slot = this.next++ % SLOTS;
      const cookie = this.next * 2 + 1;
      this.posted.set(cookie, slot);
      this.srq.postRecv(this.lmr.segment(slot * SLOT_BYTES, SLOT_BYTES), cookie);
    }
  }

  /** The slot that a completion ends. */
  take(cookie: number, what: string): number {
    const slot = this.posted.get(cookie);
    if (slot === undefined) throw new Violation(`${what}: not posted to the SRQ, or ended twice`);
    this.posted.delete(cookie);
    return slot;
  }
}
