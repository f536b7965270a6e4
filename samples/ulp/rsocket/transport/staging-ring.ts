/**
 * Registered memory that bytes are copied to and sent from: a ring, whose parts come back in the
 * order in which they were taken. A part that passes the end has two segments. What is taken at a
 * time keeps to the connection's share of its adapter.
 */
import type { Lmr, LmrSegment } from 'dapl';
import type { Share } from './share.js';

export class StagingRing {
  private readonly memory: Uint8Array;
  private readonly one: LmrSegment;
  private readonly other: LmrSegment;
  private readonly both: readonly LmrSegment[];
  /** Lengths of the parts that are taken, oldest first: a ring. */
  private readonly lengths: Uint32Array;
  private head = 0;
  private count = 0;
  private at = 0;
  private usedBytes = 0;

  /** @param parts that may be taken at a time */
  constructor(
    lmr: Lmr,
    private readonly sizeBytes: number,
    parts: number,
    private readonly share: Share,
  ) {
    this.memory = lmr.bytes;
    this.one = lmr.segment(0, 0);
    this.other = lmr.segment(0, 0);
    this.both = [this.one, this.other];
    this.lengths = new Uint32Array(parts);
  }

  /** Bytes that may be taken at a time. */
  get most(): number {
    return Math.min(this.sizeBytes, this.share.bytes);
  }

  /** Bytes that may be taken as the next part; 0 where so many parts are taken as may be. */
  get room(): number {
    return this.count === this.lengths.length ? 0 : Math.max(0, this.most - this.usedBytes);
  }

  /** Parts that are taken. */
  get parts(): number {
    return this.count;
  }

  /** Copies to behind what has been copied since the last `take`. */
  copy(bytes: Uint8Array, offset: number): void {
    const start = (this.at + offset) % this.sizeBytes;
    const first = Math.min(bytes.length, this.sizeBytes - start);
    if (first === bytes.length) {
      this.memory.set(bytes, start);
      return;
    }
    this.memory.set(bytes.subarray(0, first), start);
    this.memory.set(bytes.subarray(first), 0);
  }

  /** Takes what has been copied. @returns its segments, as long as nothing else is taken */
  take(bytes: number): LmrSegment | readonly LmrSegment[] {
    const { at, sizeBytes } = this;
    this.lengths[(this.head + this.count) % this.lengths.length] = bytes;
    if (this.count++ === 0) this.share.enter();
    this.usedBytes += bytes;
    this.at = (at + bytes) % sizeBytes;
    const first = Math.min(bytes, sizeBytes - at);
    this.one.set(at, first);
    if (first === bytes) return this.one;
    this.other.set(0, bytes - first);
    return this.both;
  }

  /** The oldest part has been sent. */
  giveBack(): void {
    this.usedBytes -= this.lengths[this.head] as number;
    this.head = (this.head + 1) % this.lengths.length;
    if (--this.count > 0) return;
    // From the beginning again: memory that was written a moment ago is still in the caches.
    this.at = 0;
    this.share.leave();
  }

  /** It is not used any more: what is taken does not come back. */
  end(): void {
    if (this.count > 0) this.share.leave();
    this.count = 0;
  }
}
