/** Bytes to be sent: in the stream, or into an area that the peer has published. */
import type { StreamError, WriteDone } from '../../socket/index.js';
import type { StagingRing } from './staging-ring.js';

export class PendingWrite {
  /** Bytes that were not taken yet. */
  left: number;
  private chunk = 0;
  private offset = 0;
  private hasEnded = false;

  /** @param areaOffset position of the next byte in the peer's areas; undefined for the stream */
  constructor(
    private readonly chunks: readonly Uint8Array[],
    private readonly done: WriteDone,
    public areaOffset?: bigint,
  ) {
    this.left = chunks.reduce((sum, { length }) => sum + length, 0);
  }

  /** Copies the next bytes, at most `left`, into staging memory that has room for them. */
  copyTo(staging: StagingRing, bytes: number): void {
    let copied = 0;
    while (copied < bytes) {
      const chunk = this.chunks[this.chunk] as Uint8Array;
      const length = Math.min(chunk.length - this.offset, bytes - copied);
      staging.copy(chunk.subarray(this.offset, this.offset + length), copied);
      copied += length;
      this.offset += length;
      if (this.offset < chunk.length) break;
      this.chunk++;
      this.offset = 0;
    }
    this.left -= bytes;
    if (this.areaOffset !== undefined) this.areaOffset += BigInt(bytes);
  }

  /** Ends the write, once. */
  end(error?: StreamError): void {
    if (this.hasEnded) return;
    this.hasEnded = true;
    this.done(error);
  }
}
