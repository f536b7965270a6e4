/**
 * Core's side of a send or receive queue. Entries are free again in order: when a completion of
 * one, or of a later one of its queue, has been read (docs/spi.md). Nothing here allocates after
 * construction.
 */
import { SGE } from '../../spi/index.js';
import { EntryRing, Slot } from './entry-ring.js';

/** Its indices are free-running. */
export class WorkQueue extends EntryRing {
  /** Index of the oldest entry not known to be finished. */
  reclaimed = 0;
  /** Producer index that the provider has been told. */
  private published = 0;

  get outstanding(): number {
    return (this.producer - this.reclaimed) >>> 0;
  }

  protected isHeld(place: number): boolean {
    return ((place - this.reclaimed) & this.ring.mask) < this.outstanding;
  }

  /** Committed entries that the provider has not been told of. */
  get unpublished(): number {
    return (this.producer - this.published) >>> 0;
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
    while (this.reclaimed !== end) {
      this.unpin(this.reclaimed);
      this.reclaimed = (this.reclaimed + 1) >>> 0;
    }
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
  override discard(): void {
    this.reclaimed = this.producer;
    super.discard();
  }
}
