/**
 * Core's side of a ring of requests or receives: the number of used entries, and the regions that
 * they pin. Subclasses decide the order in which entries are taken and freed: a queue, or the slots
 * of a shared receive queue.
 */
import { type Ring, RQE, SGE, SQE } from '../../spi/index.js';
import type { Lmr } from '../memory/lmr.js';
import { isList, type LmrSegment, type Segments } from '../memory/segment.js';

const U32 = 2 ** 32;

/** Slot flags: core's notes on an entry. */
export const EntryFlag = {
  /** A success is hidden. */
  HIDDEN: 1,
  SIGNALLED: 2,
  /** Our own entry: its completion is hidden. */
  MARKER: 4,
  /** A success is visible, and does not notify. */
  QUIET: 8,
  /** An RDMA write with immediate data. */
  IMMEDIATE: 16,
  /** A keep-alive's entry: outside the consumer's limit. */
  PROBE: 32,
} as const;

/** Core's own words of an entry: no provider reads them. */
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

export abstract class EntryRing {
  /** Index of the next entry to write. */
  producer = 0;
  /** The region of all first segments, while they share one, and the number of its pins. */
  private region: Lmr | undefined = undefined;
  private pins = 0;
  /** Otherwise the region of each entry's first segment, and those of other segments. */
  private firstRegions: (Lmr | undefined)[] | undefined = undefined;
  private otherRegions: (Lmr | undefined)[] | undefined = undefined;

  /** @param limit entries that may be outstanding: the consumer's, and a probe's */
  constructor(
    public ring: Ring,
    public limit: number,
    protected readonly maxSegments: number,
    protected readonly entry: EntryLayout,
  ) {}

  /** Entries written whose completions have not been scanned. */
  abstract readonly outstanding: number;

  /** True if the entry at this place in the ring is outstanding. */
  protected abstract isHeld(place: number): boolean;

  get full(): boolean {
    return this.outstanding >= this.limit;
  }

  /** Entries that can be written before it is full. */
  get free(): number {
    return Math.max(0, this.limit - this.outstanding);
  }

  /** First word of the next entry. */
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

  /** Writes the next entry of a ring of receives, without flags. */
  putReceive(segments: Segments, cookie: number): void {
    const { words } = this.ring;
    const count = this.putSegments(segments);
    const at = this.nextWord;
    words[at + RQE.NUM_SGE] = count;
    words[at + RQE.FLAGS] = 0;
    words[at + RQE.COOKIE_LO] = cookie >>> 0;
    words[at + RQE.COOKIE_HI] = Math.floor(cookie / U32);
  }

  /** Flags of an entry that is outstanding. */
  flagsOf(index: number): number {
    const { flagsWord, flagsBit } = this.entry;
    return ((this.ring.words[this.ring.wordOf(index) + flagsWord] ?? 0) >>> flagsBit) & 0xff;
  }

  /** Releases everything: the ring may be freed. */
  discard(): void {
    if (this.region !== undefined) this.region.inFlight -= this.pins;
    for (const lmr of this.firstRegions ?? []) if (lmr !== undefined) lmr.inFlight--;
    for (const lmr of this.otherRegions ?? []) if (lmr !== undefined) lmr.inFlight--;
    this.pins = 0;
    this.region = this.firstRegions = this.otherRegions = undefined;
  }

  protected segmentsOf(index: number): number {
    const { countWord, countBit } = this.entry;
    return ((this.ring.words[this.ring.wordOf(index) + countWord] ?? 0) >>> countBit) & 0xff;
  }

  /** Pins the region of a segment of the next entry. */
  protected pin(segment: number, lmr: Lmr): void {
    lmr.inFlight++;
    if (segment > 0) (this.otherRegions ??= [])[this.placeOf(this.producer, segment)] = lmr;
    else if (this.firstRegions === undefined && (this.pins === 0 || this.region === lmr)) {
      this.region = lmr;
      this.pins++;
    } else this.regionsByPlace()[this.producer & this.ring.mask] = lmr;
  }

  /** Gives each entry a region of its own from now on. */
  private regionsByPlace(): (Lmr | undefined)[] {
    if (this.firstRegions !== undefined) return this.firstRegions;
    const regions: (Lmr | undefined)[] = [];
    for (let place = 0; place < this.ring.entries; place++) {
      if (this.isHeld(place) && this.segmentsOf(place) > 0) regions[place] = this.region;
    }
    this.region = undefined;
    this.pins = 0;
    return (this.firstRegions = regions);
  }

  /** Unpins the regions of the entry's segments. */
  protected unpin(index: number): void {
    const count = this.segmentsOf(index);
    for (let segment = 0; segment < count; segment++) this.unpinSegment(index, segment);
  }

  private unpinSegment(index: number, segment: number): void {
    const lmr = this.regionOf(index, segment)!;
    lmr.inFlight--;
    if (segment > 0) this.otherRegions![this.placeOf(index, segment)] = undefined;
    else if (this.firstRegions !== undefined) this.firstRegions[index & this.ring.mask] = undefined;
    else if (--this.pins === 0) this.region = undefined;
  }

  protected regionOf(index: number, segment: number): Lmr | undefined {
    if (segment > 0) return this.otherRegions?.[this.placeOf(index, segment)];
    if (this.firstRegions === undefined) return this.region;
    return this.firstRegions[index & this.ring.mask];
  }

  /** Index in `otherRegions`. */
  private placeOf(index: number, segment: number): number {
    return (index & this.ring.mask) * this.maxSegments + segment;
  }
}
