/**
 * Registered memory that bytes are copied to and sent from: a ring whose parts are returned in the
 * order in which they were taken. A part that passes the end has two segments. The size of parts
 * keeps to the connection's share of its adapter.
 */
import type { Lmr, LmrSegment } from 'dapl';
import type { Share } from './share.js';

export class StagingRing {
  private readonly memory: Uint8Array;
  private readonly one: LmrSegment;
  private readonly other: LmrSegment;
  private readonly both: readonly LmrSegment[];
  /** Lengths of the parts in use, oldest first: a ring. */
  private readonly lengths: Uint32Array;
  private head = 0;
  private count = 0;
  private at = 0;
  private usedBytes = 0;

  /** @param parts limit of parts in use */
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

  /** Bytes that may be in use at a time. */
  get most(): number {
    return Math.min(this.sizeBytes, this.share.bytes);
  }

  /** Bytes of the next part; 0 if too many parts are in use. */
  get room(): number {
    return this.count === this.lengths.length ? 0 : Math.max(0, this.most - this.usedBytes);
  }

  /** Number of parts in use. */
  get parts(): number {
    return this.count;
  }

  /** Appends bytes to those copied since the last `take`. */
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

  /** Takes the copied bytes as a part. @returns its segments, valid until the next part is taken */
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

  /** The oldest part was sent. */
  giveBack(): void {
    this.usedBytes -= this.lengths[this.head] as number;
    this.head = (this.head + 1) % this.lengths.length;
    if (--this.count > 0) return;
    // Start from the beginning: recently written memory is still in the caches.
    this.at = 0;
    this.share.leave();
  }

  /** Ends the ring: parts in use are not returned. */
  end(): void {
    if (this.count > 0) this.share.leave();
    this.count = 0;
  }
}
