/**
 * Responder resources (IBTA 9.7.4.1.2): the last READ and atomic requests of a connection, kept so
 * that a duplicate can be answered again. As many as the peer may have outstanding.
 */
import { ringEntries } from '../../../core/spi/index.js';
import { psnInRange } from '../wire/psn.js';

export const RESOURCE = { NONE: 0, READ: 1, ATOMIC: 2 } as const;

/** Words of a resource. */
export const RES = {
  KIND: 0,
  FIRST_PSN: 1,
  /** PSNs that the request takes. */
  COUNT: 2,
  ADDRESS_LO: 3,
  ADDRESS_HI: 4,
  RKEY: 5,
  LENGTH: 6,
  /** Value before the atomic operation. */
  ORIGINAL_LO: 7,
  ORIGINAL_HI: 8,
  MSN: 9,
  /** Responses still owed: from packet NEXT to packet END - 1; START is where this answer began. */
  NEXT: 10,
  START: 11,
  END: 12,
  /** 1 once every response has been sent: a response owed now is a repetition. */
  ANSWERED: 13,
  /** Range that this answer reads: offset in the READ and length, in bytes. */
  OFFSET: 14,
  BYTES: 15,
  STRIDE: 16,
} as const;

const NONE = new Uint32Array(0);

export class ResponderResources {
  /** Set from the first request on: most connections see none. */
  words = NONE;
  private next = 0;

  /** The number kept. A power of two: rxe rounds the depth it was granted up to one. */
  readonly count: number;

  /** @param depth READ and atomic requests that the peer was granted */
  constructor(depth: number) {
    this.count = depth === 0 ? 0 : ringEntries(depth);
  }

  wordOf(resource: number): number {
    return resource * RES.STRIDE;
  }

  /** The oldest resource, for a new request; -1 when the peer exceeds the depth agreed on. */
  take(): number {
    if (this.words === NONE) this.words = new Uint32Array(this.count * RES.STRIDE);
    const at = this.wordOf(this.next);
    const { words } = this;
    const owed = words[at + RES.KIND] !== RESOURCE.NONE && words[at + RES.ANSWERED] === 0;
    if (owed) return -1;
    const resource = this.next;
    this.next = (this.next + 1) & (this.count - 1);
    return resource;
  }

  /** @param age 1 for the youngest, up to `count` */
  ofAge(age: number): number {
    return (this.next - age) & (this.count - 1);
  }

  /**
   * The resource of a duplicate request, -1 if it is no longer kept. The youngest one that fits:
   * PSNs go round, and where requests are rare an older one may have had the same.
   */
  find(kind: number, psn: number): number {
    if (this.words === NONE) return -1;
    for (let age = 1; age <= this.count; age++) {
      const resource = this.ofAge(age);
      const at = this.wordOf(resource);
      if (
        this.words[at + RES.KIND] === kind &&
        psnInRange(psn, this.words[at + RES.FIRST_PSN]!, this.words[at + RES.COUNT]!)
      ) {
        return resource;
      }
    }
    return -1;
  }
}
