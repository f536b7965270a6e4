/**
 * A ring of records in shared memory, for one writer thread and one reader thread. Indices run
 * freely, and are stored after the bytes that they cover. Each side notes when it waits for the
 * other: only then is a wake-up message needed.
 */

/** Words of the control block; indices are a cache line apart. */
const CONTROL = { PRODUCER: 0, CONSUMER: 16, READER_WAITS: 32, WRITER_WAITS: 33 } as const;
const CONTROL_BYTES = 256;
const RECORD_HEADER_BYTES = 8;

export class ByteRing {
  private readonly control: Int32Array;
  private readonly bytes: Uint8Array;
  private readonly words: Uint32Array;

  /** @param byteLength of this ring: the control block, followed by a power of two of bytes */
  constructor(memory: SharedArrayBuffer, byteOffset: number, byteLength: number) {
    const size = byteLength - CONTROL_BYTES;
    if (size < 4096 || (size & (size - 1)) !== 0) {
      throw new RangeError(`a ring of ${size} bytes: a power of two, 4096 at least`);
    }
    this.control = new Int32Array(memory, byteOffset, CONTROL_BYTES / 4);
    this.bytes = new Uint8Array(memory, byteOffset + CONTROL_BYTES, size);
    this.words = new Uint32Array(memory, byteOffset + CONTROL_BYTES, size / 4);
  }

  /** Bytes of memory for a ring with this capacity. */
  static bytesFor(size: number): number {
    return CONTROL_BYTES + size;
  }

  get isEmpty(): boolean {
    return this.load(CONTROL.PRODUCER) === this.load(CONTROL.CONSUMER);
  }

  /**
   * Reserves room for a record, or notes that the writer waits. @returns the record's bytes, or
   * undefined if there is no room
   */
  reserve(length: number): Uint8Array | undefined {
    return this.room(length) ?? this.roomAfterWaiting(length);
  }

  /** Publishes the record of the last `reserve`. True if the reader must be woken. */
  commit(length: number): boolean {
    const at = this.load(CONTROL.PRODUCER);
    const start = this.place(at, length);
    this.words[(start & this.mask) >>> 2] = length;
    this.store(CONTROL.PRODUCER, start + spanOf(length));
    return Atomics.exchange(this.control, CONTROL.READER_WAITS, 0) === 1;
  }

  /**
   * The next record, valid until `release`. If there is none, notes that the reader waits, and
   * returns undefined.
   */
  peek(): Uint8Array | undefined {
    return this.next() ?? this.nextAfterWaiting();
  }

  /** Releases the record of the last `peek`. True if the writer must be woken. */
  release(record: Uint8Array): boolean {
    const at = this.load(CONTROL.CONSUMER);
    this.store(CONTROL.CONSUMER, this.skipped(at) + spanOf(record.length));
    return Atomics.exchange(this.control, CONTROL.WRITER_WAITS, 0) === 1;
  }

  private get mask(): number {
    return this.bytes.length - 1;
  }

  private room(length: number): Uint8Array | undefined {
    const producer = this.load(CONTROL.PRODUCER);
    const start = this.place(producer, length);
    const used = (start + spanOf(length) - this.load(CONTROL.CONSUMER)) | 0;
    if (used > this.bytes.length) return undefined;
    // A length of 0 marks the rest of the ring as skipped.
    if (start !== producer) this.words[(producer & this.mask) >>> 2] = 0;
    const from = (start & this.mask) + RECORD_HEADER_BYTES;
    return this.bytes.subarray(from, from + length);
  }

  /** Checks for room once more: the reader may have made some before the note. */
  private roomAfterWaiting(length: number): Uint8Array | undefined {
    Atomics.store(this.control, CONTROL.WRITER_WAITS, 1);
    const room = this.room(length);
    if (room !== undefined) Atomics.store(this.control, CONTROL.WRITER_WAITS, 0);
    return room;
  }

  private next(): Uint8Array | undefined {
    if (this.isEmpty) return undefined;
    const at = this.skipped(this.load(CONTROL.CONSUMER)) & this.mask;
    const from = at + RECORD_HEADER_BYTES;
    return this.bytes.subarray(from, from + this.words[at >>> 2]!);
  }

  private nextAfterWaiting(): Uint8Array | undefined {
    Atomics.store(this.control, CONTROL.READER_WAITS, 1);
    const record = this.next();
    if (record !== undefined) Atomics.store(this.control, CONTROL.READER_WAITS, 0);
    return record;
  }

  /** Start of a record: one that would not fit before the end starts at the beginning. */
  private place(at: number, length: number): number {
    const left = this.bytes.length - (at & this.mask);
    return left < spanOf(length) ? (at + left) | 0 : at;
  }

  private skipped(at: number): number {
    if (this.words[(at & this.mask) >>> 2] !== 0) return at;
    return (at + this.bytes.length - (at & this.mask)) | 0;
  }

  private load(word: number): number {
    return Atomics.load(this.control, word);
  }

  private store(word: number, index: number): void {
    Atomics.store(this.control, word, index | 0);
  }
}

function spanOf(length: number): number {
  return RECORD_HEADER_BYTES + Math.ceil(length / 8) * 8;
}
