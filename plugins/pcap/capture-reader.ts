/** Reads the blocks of a capture file one by one, however long the file is. */
import { closeSync, openSync, readSync } from 'node:fs';

const CHUNK_BYTES = 1 << 18;
/** No block is larger, of whatever writer: a length beyond that is none. */
const MOST_BYTES = 1 << 24;
/** Type, length, and the length again at the end. */
const LEAST_BYTES = 12;

export interface Block {
  readonly type: number;
  /** All of the block, valid until the next one is read. */
  readonly bytes: DataView;
}

export class CaptureReader {
  /** Bytes of the blocks that have been read: where the next one begins in the file. */
  offset = 0;
  private readonly fd: number;
  private buffer = new Uint8Array(CHUNK_BYTES);
  private start = 0;
  private end = 0;

  /** @throws Error as `fs.openSync` */
  constructor(path: string) {
    this.fd = openSync(path, 'r');
  }

  /**
   * The next whole block; undefined at the end. What a writer that was killed has left of its last
   * block is no block.
   */
  next(): Block | undefined {
    if (!this.has(LEAST_BYTES)) return undefined;
    const length = this.view(8).getUint32(4, true);
    if (length < LEAST_BYTES || length > MOST_BYTES || length % 4 !== 0 || !this.has(length))
      return undefined;
    const bytes = this.view(length);
    if (bytes.getUint32(length - 4, true) !== length) return undefined;
    this.start += length;
    this.offset += length;
    return { type: bytes.getUint32(0, true), bytes };
  }

  close(): void {
    closeSync(this.fd);
  }

  private view(length: number): DataView {
    return new DataView(this.buffer.buffer, this.start, length);
  }

  /** Sees to it that `length` bytes from `start` on are in the buffer. */
  private has(length: number): boolean {
    if (this.end - this.start >= length) return true;
    const rest = this.buffer.subarray(this.start, this.end);
    if (length > this.buffer.length) this.buffer = new Uint8Array(length);
    this.buffer.set(rest);
    this.start = 0;
    this.end = rest.length;
    while (this.end < length) {
      const room = this.buffer.length - this.end;
      const taken = readSync(this.fd, this.buffer, this.end, room, null);
      if (taken === 0) return false;
      this.end += taken;
    }
    return true;
  }
}
