/** Reads the blocks of a capture file one by one, in constant memory. */
import { closeSync, openSync, readSync } from 'node:fs';

const CHUNK_BYTES = 1 << 18;
/** The largest block of any writer: a greater length is invalid. */
const MOST_BYTES = 1 << 24;
/** The smallest block: type, length, and the length repeated at the end. */
const LEAST_BYTES = 12;

export interface Block {
  readonly type: number;
  /** The whole block, valid until the next one is read. */
  readonly bytes: DataView;
}

export class CaptureReader {
  /** Bytes of the blocks read so far: the offset of the next one. */
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
   * The next complete block; undefined at the end. A partial last block, left by a killed writer,
   * is ignored.
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

  /** Loads `length` bytes from `start` on into the buffer. */
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
