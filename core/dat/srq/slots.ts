/**
 * Core's side of a shared receive ring: which slots are posted, and which regions they pin. Slots
 * complete in any order, so they form a free-list; the provider gets their numbers through
 * `submissions`. Nothing here allocates after construction, but for a resize.
 */
import { assert } from '../../spi/checks/index.js';
import { RQE, SGE, type SharedReceiveQueue } from '../../spi/index.js';
import type { Lmr } from '../memory/lmr.js';
import { isList, type LmrSegment, type Segments } from '../memory/segment.js';

const U32 = 2 ** 32;

export class SrqSlots {
  /** Slots posted whose completions have not been taken in. */
  outstanding = 0;
  /** A stack of slot numbers: `vacant[0]` to `vacant[vacantCount - 1]`. */
  private vacant = new Uint32Array(0);
  private vacantCount = 0;
  /** By slot: 1 while it is posted. */
  private posted = new Uint8Array(0);
  /** By slot: segments of its entry. */
  private segments = new Uint8Array(0);
  private regions: (Lmr | undefined)[] = [];
  private entries = 0;

  /**
   * @param maxSegments of one receive
   * @param limit receives that may be outstanding
   */
  constructor(
    private readonly srq: SharedReceiveQueue,
    private readonly maxSegments: number,
    public limit: number,
  ) {
    this.grow();
  }

  get full(): boolean {
    return this.outstanding >= this.limit;
  }

  /** Writes a receive into a vacant slot; the caller has checked that there is one. */
  put(segments: Segments, cookie: number): void {
    const { slots, submissions } = this.srq.ring;
    const slot = this.vacant[--this.vacantCount] ?? 0;
    const { words } = slots;
    const at = slots.wordOf(slot);
    const count = this.putSegments(slot, at + RQE.SEGMENTS, words, segments);
    words[at + RQE.NUM_SGE] = count;
    words[at + RQE.FLAGS] = 0;
    words[at + RQE.COOKIE_LO] = cookie >>> 0;
    words[at + RQE.COOKIE_HI] = Math.floor(cookie / U32);
    this.segments[slot] = count;
    this.posted[slot] = 1;
    this.outstanding++;
    submissions.words[submissions.wordOf(submissions.producer)] = slot;
    submissions.producer = submissions.producer + 1;
  }

  /** A completion names the slot. Returns false when it is not posted. */
  reclaim(slot: number): boolean {
    if (this.posted[slot] !== 1) return false;
    this.release(slot);
    return true;
  }

  /** Takes back what the provider has refused: the entries posted last. Returns how many. */
  withdraw(): number {
    const { submissions } = this.srq.ring;
    const { consumer, producer } = submissions;
    const refused = (producer - consumer) >>> 0;
    for (let i = 1; i <= refused; i++) {
      this.release(submissions.words[submissions.wordOf(producer - i)] ?? 0);
    }
    submissions.producer = consumer;
    return refused;
  }

  /** The provider's ring has become larger: slots keep their numbers. */
  grow(): void {
    const { entries } = this.srq.ring.slots;
    const first = this.entries;
    if (entries <= first) return;
    this.entries = entries;
    this.vacant = enlarged(this.vacant, new Uint32Array(entries));
    this.posted = enlarged(this.posted, new Uint8Array(entries));
    this.segments = enlarged(this.segments, new Uint8Array(entries));
    this.regions.length = entries * this.maxSegments;
    this.regions.fill(undefined, first * this.maxSegments);
    for (let slot = entries - 1; slot >= first; slot--) this.vacant[this.vacantCount++] = slot;
  }

  /** Frees everything: the queue is gone. */
  discard(): void {
    for (let slot = 0; slot < this.entries; slot++) {
      if (this.posted[slot] === 1) this.release(slot);
    }
  }

  private putSegments(slot: number, at: number, words: Uint32Array, segments: Segments): number {
    if (!isList(segments)) {
      this.putSegment(slot, 0, at, words, segments);
      return 1;
    }
    let count = 0;
    for (const segment of segments) this.putSegment(slot, count++, at, words, segment);
    return count;
  }

  private putSegment(
    slot: number,
    index: number,
    first: number,
    words: Uint32Array,
    segment: LmrSegment,
  ): void {
    const at = first + index * SGE.WORDS;
    words[at + SGE.ADDRESS_LO] = segment.addressLo;
    words[at + SGE.ADDRESS_HI] = segment.addressHi;
    words[at + SGE.LENGTH] = segment.lengthBytes;
    words[at + SGE.LKEY] = segment.lmr.lmrContext;
    segment.lmr.inFlight++;
    this.regions[slot * this.maxSegments + index] = segment.lmr;
  }

  private release(slot: number): void {
    const first = slot * this.maxSegments;
    const end = first + (this.segments[slot] ?? 0);
    for (let i = first; i < end; i++) {
      const lmr = this.regions[i];
      if (lmr !== undefined) lmr.inFlight--;
      this.regions[i] = undefined;
    }
    assert(this.posted[slot] === 1, 'a slot of an SRQ is released once', slot);
    this.posted[slot] = 0;
    this.vacant[this.vacantCount++] = slot;
    this.outstanding--;
  }
}

function enlarged<T extends Uint8Array | Uint32Array>(old: T, larger: T): T {
  larger.set(old);
  return larger;
}
