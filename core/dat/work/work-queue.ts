/**
 * Core's side of a send or receive ring: which entries are in use, and which regions they pin. An
 * entry is free again when a completion of it, or of a later entry of its queue, has been read
 * (docs/spi.md). Nothing here allocates after construction.
 */
import { type Ring, RQE, SGE, SQE } from '../../spi/index.js';
import type { Lmr } from '../memory/lmr.js';
import { isList, type LmrSegment, type Segments } from '../memory/segment.js';

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
  /** Our own, of a keep-alive: beside the consumer's limit. */
  PROBE: 32,
} as const;

/** Where core keeps what it notes of an entry: in words of it that no provider reads. */
export interface EntryLayout {
  /** First word of the segments. */
  readonly segments: number;
  /** Word and bit of their number, and of the slot flags. */
  readonly countWord: number;
  readonly countBit: number;
  readonly flagsWord: number;
  readonly flagsBit: number;
}

export const SEND_ENTRY: EntryLayout = {
  segments: SQE.SEGMENTS,
  countWord: SQE.CONTROL,
  countBit: 16,
  flagsWord: SQE.CONTROL,
  flagsBit: 24,
};

export const RECEIVE_ENTRY: EntryLayout = {
  segments: RQE.SEGMENTS,
  countWord: RQE.NUM_SGE,
  countBit: 0,
  flagsWord: RQE.FLAGS,
  flagsBit: 0,
};

export class WorkQueue {
  /** Free-running index of the next entry to write. */
  producer = 0;
  /** Free-running index of the oldest entry not known to be finished. */
  reclaimed = 0;
  /** Producer index that the provider has been told. */
  private published = 0;
  /** The region of all first segments, while they have but one, and how many of them pin it. */
  private region: Lmr | undefined = undefined;
  private pins = 0;
  /** Else the region of each entry's first segment; and those of other segments. */
  private firstRegions: (Lmr | undefined)[] | undefined = undefined;
  private otherRegions: (Lmr | undefined)[] | undefined = undefined;

  /** @param limit entries that may be outstanding: the consumer's, and a probe while it is there */
  constructor(
    readonly ring: Ring,
    public limit: number,
    private readonly maxSegments: number,
    private readonly entry: EntryLayout,
  ) {}

  get outstanding(): number {
    return (this.producer - this.reclaimed) >>> 0;
  }

  get full(): boolean {
    return this.outstanding >= this.limit;
  }

  /** Entries that can be written before it is full. */
  get free(): number {
    return Math.max(0, this.limit - this.outstanding);
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
    const { words } = this.ring;
    const at = this.nextWord + this.entry.segments + index * SGE.WORDS;
    words[at + SGE.ADDRESS_LO] = segment.addressLo;
    words[at + SGE.ADDRESS_HI] = segment.addressHi;
    words[at + SGE.LENGTH] = segment.lengthBytes;
    words[at + SGE.LKEY] = segment.lmr.lmrContext;
    this.pin(index, segment.lmr);
  }

  /** The next entry is complete, and names its number of segments: it joins the queue. */
  commit(flags: number): void {
    const { words } = this.ring;
    const { flagsWord, flagsBit } = this.entry;
    words[this.nextWord + flagsWord]! |= flags << flagsBit;
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
    const { flagsWord, flagsBit } = this.entry;
    return ((this.ring.words[this.ring.wordOf(index) + flagsWord] ?? 0) >>> flagsBit) & 0xff;
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

  /** Whether something outstanding will still complete: what is left else ends without a word. */
  get awaitsCompletion(): boolean {
    for (let i = this.reclaimed; i !== this.producer; i = (i + 1) >>> 0) {
      if ((this.flagsOf(i) & Slot.SIGNALLED) !== 0) return true;
    }
    return false;
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
    const { words } = this.ring;
    for (let i = this.reclaimed; i !== this.producer; i = (i + 1) >>> 0) {
      const segments = this.segmentsOf(i);
      const from = this.ring.wordOf(i);
      other.ring.words.set(
        words.subarray(from, from + this.entry.segments + segments * SGE.WORDS),
        other.nextWord,
      );
      for (let s = 0; s < segments; s++) other.pin(s, this.regionOf(i, s)!);
      other.commit(this.flagsOf(i));
    }
    this.discard();
  }

  /** Most segments of one entry that is outstanding. */
  get widest(): number {
    let widest = 0;
    for (let i = this.reclaimed; i !== this.producer; i = (i + 1) >>> 0) {
      widest = Math.max(widest, this.segmentsOf(i));
    }
    return widest;
  }

  /** Frees everything: the queue pair is gone, and perhaps the ring with it. */
  discard(): void {
    this.reclaimed = this.producer;
    if (this.region !== undefined) this.region.inFlight -= this.pins;
    for (const lmr of this.firstRegions ?? []) if (lmr !== undefined) lmr.inFlight--;
    for (const lmr of this.otherRegions ?? []) if (lmr !== undefined) lmr.inFlight--;
    this.pins = 0;
    this.region = this.firstRegions = this.otherRegions = undefined;
  }

  private releaseOldest(): void {
    const index = this.reclaimed;
    const count = this.segmentsOf(index);
    for (let i = 0; i < count; i++) this.unpin(index, i);
    this.reclaimed = (index + 1) >>> 0;
  }

  private segmentsOf(index: number): number {
    const { countWord, countBit } = this.entry;
    return ((this.ring.words[this.ring.wordOf(index) + countWord] ?? 0) >>> countBit) & 0xff;
  }

  /** A segment of the next entry lies in that region. */
  private pin(segment: number, lmr: Lmr): void {
    lmr.inFlight++;
    if (segment > 0) (this.otherRegions ??= [])[this.placeOf(this.producer, segment)] = lmr;
    else if (this.firstRegions === undefined && (this.pins === 0 || this.region === lmr)) {
      this.region = lmr;
      this.pins++;
    } else this.regionsBySlot()[this.producer & this.ring.mask] = lmr;
  }

  /** From now on each entry may have a region of its own. */
  private regionsBySlot(): (Lmr | undefined)[] {
    if (this.firstRegions !== undefined) return this.firstRegions;
    const regions: (Lmr | undefined)[] = [];
    for (let i = this.reclaimed; i !== this.producer; i = (i + 1) >>> 0) {
      if (this.segmentsOf(i) > 0) regions[i & this.ring.mask] = this.region;
    }
    this.region = undefined;
    this.pins = 0;
    return (this.firstRegions = regions);
  }

  private unpin(index: number, segment: number): void {
    const lmr = this.regionOf(index, segment)!;
    lmr.inFlight--;
    if (segment > 0) this.otherRegions![this.placeOf(index, segment)] = undefined;
    else if (this.firstRegions !== undefined) this.firstRegions[index & this.ring.mask] = undefined;
    else if (--this.pins === 0) this.region = undefined;
  }

  private regionOf(index: number, segment: number): Lmr | undefined {
    if (segment > 0) return this.otherRegions?.[this.placeOf(index, segment)];
    if (this.firstRegions === undefined) return this.region;
    return this.firstRegions[index & this.ring.mask];
  }

  /** Index in `otherRegions`. */
  private placeOf(index: number, segment: number): number {
    return (index & this.ring.mask) * this.maxSegments + segment;
  }
}
