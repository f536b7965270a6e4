/**
 * Rings: the data path of every provider, frozen early and documented in docs/spi.md.
 *
 * A ring is two free-running u32 indices and a power of two of entries of equal size. Where a ring
 * has a buffer to itself, the indices are a cache line apart in a control block before the entries;
 * a provider may lay out its rings in other ways. One side produces, the other consumes; an index
 * is stored after the entries it covers are written, and loaded before they are read, with Atomics
 * where the buffer is shared. Words are in the machine's byte order, which is little-endian, so
 * that a segment has the memory layout of `struct ibv_sge`.
 */
import { outOfRange } from '../checks/index.js';

/** Byte offset of the first entry; the control block lies before it. */
export const RING_HEADER_BYTES = 128;
const PRODUCER_WORD = 0;
const CONSUMER_WORD = 16;

/** Send queue entry: 16 words, then `maxSge` segments of 4 words (or the inline payload). */
export const SQE = {
  /** opcode (bits 0-7), flags (8-15), number of segments (16-23); 24-31 are core's own. */
  CONTROL: 0,
  /** Bytes of inline payload; 0 unless the INLINE flag is set. */
  INLINE_LENGTH: 1,
  COOKIE_LO: 2,
  COOKIE_HI: 3,
  REMOTE_ADDRESS_LO: 4,
  REMOTE_ADDRESS_HI: 5,
  RKEY: 6,
  /** Immediate (the value whose big-endian bytes go on the wire) or the rkey to invalidate. */
  IMMEDIATE_OR_INVALIDATE: 7,
  /** Compare operand of compare-and-swap, or the addend of fetch-and-add. */
  COMPARE_ADD_LO: 8,
  COMPARE_ADD_HI: 9,
  SWAP_LO: 10,
  SWAP_HI: 11,
  /** Bind: words 4, 5 hold the window's address. */
  BIND_LENGTH_LO: 6,
  BIND_LENGTH_HI: 7,
  BIND_WINDOW: 8,
  BIND_REGION_LKEY: 9,
  BIND_ACCESS: 10,
  BIND_RKEY: 11,
  /** Datagrams: address handle number, destination QPN and Q_Key. */
  ADDRESS_HANDLE: 12,
  REMOTE_QPN: 13,
  REMOTE_QKEY: 14,
  XRC_SRQN: 15,
  SEGMENTS: 16,
} as const;

/** Receive queue entry: 4 words, then `maxSge` segments. FLAGS are core's own. */
export const RQE = { NUM_SGE: 0, FLAGS: 1, COOKIE_LO: 2, COOKIE_HI: 3, SEGMENTS: 4 } as const;

/** Segment: address (u64), length, lkey: `struct ibv_sge` and DAT_LMR_TRIPLET alike. */
export const SGE = { ADDRESS_LO: 0, ADDRESS_HI: 1, LENGTH: 2, LKEY: 3, WORDS: 4 } as const;

/** Completion queue entry: 16 words. */
export const CQE = {
  /** status (bits 0-7), WcOpcode (8-15), WcFlags (16-23). */
  CONTROL: 0,
  QPN: 1,
  COOKIE_LO: 2,
  COOKIE_HI: 3,
  /** On success: bytes received, or the length that the send entry names. */
  BYTE_LENGTH: 4,
  IMMEDIATE_OR_INVALIDATE: 5,
  /** Datagrams only. */
  SOURCE_QPN: 6,
  /** Provider detail of a failure: an AETH syndrome on RC, errno of a refusal, or its own. */
  VENDOR_ERROR: 7,
  /** Free-running index of the send or receive entry, or the slot number of an SRQ entry. */
  WQE_INDEX: 8,
  /** Number of the SRQ the receive came from; 0 if none. */
  SRQN: 9,
  /**
   * The `context` number that the creator gave the queue pair: demultiplexing is a table look-up.
   */
  QP_CONTEXT: 10,
  /** Datagrams only: the UDP port that it came from; 0 where the provider cannot tell. */
  SOURCE_PORT: 11,
  WORDS: 16,
} as const;

export const CQE_BYTES = 64;

/** Bytes of a send entry with `maxSge` segments or `maxInline` bytes of inline payload. */
export function sqeBytes(maxSge: number, maxInline = 0): number {
  return roundUp(64 + Math.max(maxSge * 16, maxInline), 64);
}

/** Bytes of a receive entry with `maxSge` segments. */
export function rqeBytes(maxSge: number): number {
  return roundUp(16 + maxSge * 16, 32);
}

function roundUp(value: number, multiple: number): number {
  return Math.ceil(value / multiple) * multiple;
}

/** The smallest power of two that is at least `n` (n >= 1). */
export function ringEntries(n: number): number {
  return n <= 1 ? 1 : 2 << (31 - Math.clz32(n - 1));
}

/** Place of a ring: indices of words. */
export interface RingPlace {
  readonly words: Uint32Array;
  /** Its two indices. */
  readonly producerWord: number;
  readonly consumerWord: number;
  /** First word of the first entry. */
  readonly firstWord: number;
  /** True if the other side is another process: V8 does not see that the memory is shared. */
  readonly betweenProcesses?: boolean;
}

/** The words of a ring that has ended: nothing can be read or written. */
const NO_WORDS = new Uint32Array(0);

/**
 * A single-producer, single-consumer ring: word w of entry i is `words[wordOf(i) + w]`. Indices are
 * free-running u32; compare them with `(a - b) | 0`. The meaning of "consumed" depends on the
 * queue: see docs/spi.md.
 */
export class Ring {
  /** Its memory, perhaps with other data; use `wordOf` to find its words. */
  words: Uint32Array;
  readonly mask: number;
  readonly strideWords: number;
  private readonly firstWord: number;
  private readonly producerWord: number;
  private readonly consumerWord: number;
  /** True if the other side may be another thread or process. */
  private readonly shared: boolean;

  /**
   * A ring with a buffer of its own, laid out as above.
   * @param entries power of two, 1 to 2^24
   * @param strideBytes bytes of an entry, a multiple of 4
   * @throws RangeError for any other value, or a buffer that is too small
   */
  constructor(buffer: ArrayBufferLike, entries: number, strideBytes: number);
  /** A ring in memory that also holds other data. */
  constructor(place: RingPlace, entries: number, strideBytes: number);
  constructor(where: ArrayBufferLike | RingPlace, entries: number, strideBytes: number) {
    if (entries < 1 || entries > 2 ** 24 || (entries & (entries - 1)) !== 0) {
      throw outOfRange('the number of ring entries', entries, 'a power of two up to 2^24');
    }
    if (strideBytes < 4 || strideBytes % 4 !== 0) {
      throw outOfRange('the stride of a ring', strideBytes, 'a positive multiple of 4');
    }
    const place = 'words' in where ? where : placeOf(where);
    const { words, firstWord } = place;
    const end = firstWord * 4 + entries * strideBytes;
    if (words.byteLength < end) {
      throw new RangeError(`ring buffer has ${words.byteLength} bytes; ${end} needed`);
    }
    this.words = words;
    this.mask = entries - 1;
    this.strideWords = strideBytes >>> 2;
    this.firstWord = firstWord;
    this.producerWord = place.producerWord;
    this.consumerWord = place.consumerWord;
    this.shared = place.betweenProcesses === true || !(words.buffer instanceof ArrayBuffer);
  }

  /** Bytes of the buffer that a ring needs. */
  static bytes(entries: number, strideBytes: number): number {
    return RING_HEADER_BYTES + entries * strideBytes;
  }

  /** A ring in memory of its own. */
  static allocate(entries: number, strideBytes: number): Ring {
    return new Ring(new ArrayBuffer(Ring.bytes(entries, strideBytes)), entries, strideBytes);
  }

  /** The whole buffer that contains it. */
  get buffer(): ArrayBufferLike {
    return this.words.buffer;
  }

  get entries(): number {
    return this.mask + 1;
  }

  get strideBytes(): number {
    return this.strideWords * 4;
  }

  /** Index of the entry's first word in `words`. */
  wordOf(index: number): number {
    return this.firstWord + (index & this.mask) * this.strideWords;
  }

  /** Byte offset in `buffer` of the entry. */
  byteOf(index: number): number {
    return this.words.byteOffset + this.wordOf(index) * 4;
  }

  /**
   * Frees its memory: a ring that is used afterwards reads nothing, and its writes are lost.
   */
  end(): void {
    this.words = NO_WORDS;
  }

  /** Takes over the entries of a ring with entries of the same size, and no more of them. */
  copyEntries(from: Ring): void {
    const first = from.wordOf(0);
    const words = from.words.subarray(first, first + from.entries * from.strideWords);
    this.words.set(words, this.wordOf(0));
  }

  // An atomic access is a call of 20 ns; memory that no other thread can see does not need it.

  get producer(): number {
    return this.load(this.producerWord);
  }

  set producer(index: number) {
    this.store(this.producerWord, index);
  }

  get consumer(): number {
    return this.load(this.consumerWord);
  }

  set consumer(index: number) {
    this.store(this.consumerWord, index);
  }

  private load(word: number): number {
    return (this.shared ? Atomics.load(this.words, word) : this.words[word]!) >>> 0;
  }

  private store(word: number, index: number): void {
    if (this.shared) Atomics.store(this.words, word, index);
    else this.words[word] = index;
  }

  /** Entries produced and not yet consumed. */
  get length(): number {
    return (this.producer - this.consumer) >>> 0;
  }
}

function placeOf(buffer: ArrayBufferLike): RingPlace {
  return {
    words: new Uint32Array(buffer, 0, buffer.byteLength >>> 2),
    producerWord: PRODUCER_WORD,
    consumerWord: CONSUMER_WORD,
    firstWord: RING_HEADER_BYTES >>> 2,
  };
}

/**
 * The ring of a shared receive queue: a free-list of slots, since entries complete in any order.
 * The poster takes a free slot, writes the entry at `slots.wordOf(slot)` and submits the slot's
 * number through `submissions`; the completion's WQE_INDEX names the slot, which is free again.
 */
export interface SharedReceiveRing {
  readonly slots: Ring;
  /** One word per entry: a slot number. */
  readonly submissions: Ring;
}
