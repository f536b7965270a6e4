/**
 * Core's side of a send or receive ring: which entries are in use, and which regions they pin. An
 * entry is free again when a completion of it, or of a later entry of its queue, has been read
 * (docs/spi.md). Nothing here allocates after construction.
 */
import { type Ring, SGE } from '../spi/index.js';
import type { Lmr } from './lmr.js';
import { isList, type LmrSegment, type Segments } from './segment.js';

/** Slot flags. */
export const Slot = {
  /** A success must not show. */
  HIDDEN: 1,
  SIGNALLED: 2,
  /** Our own: no completion of it shows. */
  MARKER: 4,
  /** A success shows, and does not notify. */
  QUIET: 8,
  /** An RDMA write with immediate data. */
  IMMEDIATE: 16,
} as const;

export class WorkQueue {
  /** Free-running index of the next entry to write. */
  producer = 0;
  /** Free-running index of the oldest entry not known to be finished. */
  reclaimed = 0;
  /** Producer index that the provider has been told. */
  private published = 0;
  /** Of each entry: its flags, and how many segments it has. */
  private readonly slots: Uint8Array;
  /** The region of each entry's first segment, as far as entries have been used; and of others. */
  private readonly firstRegions: (Lmr | undefined)[] = [];
  private readonly otherRegions: (Lmr | undefined)[] = [];

  /**
   * @param limit entries that the consumer may have outstanding
   * @param segmentsAt first word of the segments within an entry
   */
  constructor(
    readonly ring: Ring,
    readonly limit: number,
    readonly maxSegments: number,
    private readonly segmentsAt: number,
  ) {
    this.slots = new Uint8Array(2 * ring.entries);
  }

  get outstanding(): number {
    return (this.producer - this.reclaimed) >>> 0;
  }

  /** Committed entries that the provider has not been told of. */
  get unpublished(): number {
    return (this.producer - this.published) >>> 0;
  }

  /** Word of the entry that is written next. */
  get nextWord(): number {
    return this.ring.wordOf(this.producer);
  }

  /** Writes the segments of the next entry; returns how many there are. */
  putSegments(segments: Segments): number {
    if (!isList(segments)) {
      this.putSegment(0, segments);
      return 1;
    }
    let count = 0;
    for (const segment of segments) this.putSegment(count++, segment);
    return count;
  }

  /** Writes a segment of the next entry and pins its region. */
  private putSegment(index: number, segment: LmrSegment): void {
    const { words, mask } = this.ring;
    const at = this.nextWord + this.segmentsAt + index * SGE.WORDS;
    words[at + SGE.ADDRESS_LO] = segment.addressLo;
    words[at + SGE.ADDRESS_HI] = segment.addressHi;
    words[at + SGE.LENGTH] = segment.lengthBytes;
    words[at + SGE.LKEY] = segment.lmr.lmrContext;
    segment.lmr.inFlight++;
    this.setRegion(this.producer & mask, index, segment.lmr);
  }

  /** The next entry is complete: it becomes part of the queue. */
  commit(segments: number, flags: number): void {
    const slot = this.producer & this.ring.mask;
    this.slots[2 * slot] = flags;
    this.slots[2 * slot + 1] = segments;
    this.producer = (this.producer + 1) >>> 0;
  }

  /** Shows committed entries to the provider. Returns false when there are no new ones. */
  publish(): boolean {
    if (this.published === this.producer) return false;
    this.published = this.producer;
    this.ring.producer = this.producer;
    return true;
  }

  /** Flags of an entry that is outstanding. */
  flagsOf(index: number): number {
    return this.slots[2 * (index & this.ring.mask)] ?? 0;
  }

  /** Whether a completion may name this entry now. */
  isOutstanding(index: number): boolean {
    return (index - this.reclaimed) >>> 0 < this.outstanding;
  }

  /** Whether the newest outstanding entry will end without a completion of its own. */
  get endsUnsignalled(): boolean {
    if (this.outstanding === 0) return false;
    return (this.flagsOf((this.producer - 1) >>> 0) & Slot.SIGNALLED) === 0;
  }

  /** Frees the entries up to and with this one. */
  reclaimThrough(index: number): void {
    const end = (index + 1) >>> 0;
    while (this.reclaimed !== end) this.releaseOldest();
  }

  /**
   * Writes what is outstanding into another queue of the same kind, in order, and lets go of it
   * here. There must be room.
   */
  moveTo(other: WorkQueue): void {
    const { words, mask } = this.ring;
    for (let i = this.reclaimed; i !== this.producer; i = (i + 1) >>> 0) {
      const slot = i & mask;
      const segments = this.segmentsOf(slot);
      const from = this.ring.wordOf(i);
      other.ring.words.set(
        words.subarray(from, from + this.segmentsAt + segments * SGE.WORDS),
        other.nextWord,
      );
      for (let s = 0; s < segments; s++) other.adopt(s, this.regionOf(slot, s));
      other.commit(segments, this.flagsOf(i));
    }
    this.discard();
  }

  /** Pins the region of a segment that has been copied. */
  private adopt(segment: number, lmr: Lmr | undefined): void {
    if (lmr !== undefined) lmr.inFlight++;
    this.setRegion(this.producer & this.ring.mask, segment, lmr);
  }

  /** Most segments of one entry that is outstanding. */
  get widest(): number {
    let widest = 0;
    for (let i = this.reclaimed; i !== this.producer; i = (i + 1) >>> 0) {
      widest = Math.max(widest, this.segmentsOf(i & this.ring.mask));
    }
    return widest;
  }

  /** Frees everything: the queue pair is gone. */
  discard(): void {
    while (this.reclaimed !== this.producer) this.releaseOldest();
  }

  private releaseOldest(): void {
    const slot = this.reclaimed & this.ring.mask;
    const count = this.segmentsOf(slot);
    for (let i = 0; i < count; i++) {
      const lmr = this.regionOf(slot, i);
      if (lmr !== undefined) lmr.inFlight--;
      this.setRegion(slot, i, undefined);
    }
    this.reclaimed = (this.reclaimed + 1) >>> 0;
  }

  private segmentsOf(slot: number): number {
    return this.slots[2 * slot + 1] ?? 0;
  }

  private regionOf(slot: number, segment: number): Lmr | undefined {
    if (segment === 0) return this.firstRegions[slot];
    return this.otherRegions[slot * this.maxSegments + segment];
  }

  private setRegion(slot: number, segment: number, lmr: Lmr | undefined): void {
    if (segment === 0) this.firstRegions[slot] = lmr;
    else this.otherRegions[slot * this.maxSegments + segment] = lmr;
  }
}
