/** One write of the consumer: its position, and the bytes that must be copied. */
import type { Failure } from './host.js';

export type JobDone = (failure?: Failure) => void;

/** A position in the chunks of a write. */
export interface Place {
  readonly index: number;
  readonly offset: number;
}

export class WriteJob {
  private index = 0;
  private offset = 0;
  /** Bytes from the position on that are copied, even if contiguous. */
  private copies = 0;
  /** RDMA Writes in flight. */
  writes = 0;
  /** True if nothing more of it is sent. */
  isStopped = false;
  readonly totalBytes: number;

  constructor(
    private readonly chunks: readonly Uint8Array[],
    readonly done: JobDone,
  ) {
    this.totalBytes = chunks.reduce((sum, { length }) => sum + length, 0);
    this.skipEmpty();
  }

  get place(): Place {
    return { index: this.index, offset: this.offset };
  }

  get isAtEnd(): boolean {
    return this.index === this.chunks.length;
  }

  /** Contiguous bytes at the position that need not be copied; 0 for none. */
  get together(): number {
    if (this.copies > 0 || this.isAtEnd) return 0;
    return (this.chunks[this.index] as Uint8Array).length - this.offset;
  }

  /** Contiguous bytes at the position, without advancing. */
  view(lengthBytes: number): Uint8Array {
    return (this.chunks[this.index] as Uint8Array).subarray(this.offset, this.offset + lengthBytes);
  }

  advance(lengthBytes: number): void {
    let left = lengthBytes;
    while (left > 0) {
      const rest = (this.chunks[this.index] as Uint8Array).length - this.offset;
      const step = Math.min(rest, left);
      this.offset += step;
      left -= step;
      this.skipEmpty();
    }
    this.copies = Math.max(0, this.copies - lengthBytes);
  }

  /**
   * Pieces to copy from the position on, without advancing.
   * @param isBig ends them before a chunk that need not be copied
   */
  gather(most: number, isBig: (bytes: number) => boolean): { pieces: Uint8Array[]; bytes: number } {
    const pieces: Uint8Array[] = [];
    let bytes = 0;
    let { offset } = this;
    for (let i = this.index; i < this.chunks.length && bytes < most; i++) {
      const chunk = this.chunks[i] as Uint8Array;
      if (bytes > 0 && bytes >= this.copies && isBig(chunk.length)) break;
      const piece = chunk.subarray(offset, offset + most - bytes);
      offset = 0;
      if (piece.length > 0) pieces.push(piece);
      bytes += piece.length;
    }
    return { pieces, bytes };
  }

  /** Returns to the position from which `bytes` must be copied. */
  rewind({ index, offset }: Place, bytes: number): void {
    this.index = index;
    this.offset = offset;
    this.copies = bytes;
    this.skipEmpty();
  }

  copyNext(bytes: number): void {
    this.copies = bytes;
  }

  /** Stops: nothing more of it is sent. */
  stop(): void {
    this.isStopped = true;
    this.index = this.chunks.length;
    this.offset = 0;
  }

  private skipEmpty(): void {
    const { chunks } = this;
    while (this.index < chunks.length) {
      if (this.offset < (chunks[this.index] as Uint8Array).length) return;
      this.index++;
      this.offset = 0;
    }
  }
}
