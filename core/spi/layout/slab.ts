/**
 * Memory in pieces, for objects that number in thousands. A typed array costs some two hundred
 * bytes beside its content, and lies apart from its neighbours in use. A slab cuts large buffers
 * into pieces of a few sizes; a piece is a place in views that it shares with its neighbours.
 * Pieces are cleared before they are reused. For one thread only.
 */
import { assert } from '../checks/index.js';

/** Bytes of the buffers that are cut into pieces. */
const CHUNK_BYTES = 1 << 16;
/** A larger piece has a buffer of its own, freed with the piece. */
const LARGEST_CUT = CHUNK_BYTES >>> 2;
/** Sizes are multiples of a cache line, four to each power of two. */
const LINE_BYTES = 64;

const NO_WORDS = new Uint32Array(0);
const NO_DOUBLES = new Float64Array(0);

/** Bytes that a piece of this size takes. */
export function pieceBytes(bytes: number): number {
  const step = Math.max(LINE_BYTES, 2 ** (Math.ceil(Math.log2(Math.max(1, bytes))) - 3));
  return Math.max(LINE_BYTES, Math.ceil(bytes / step) * step);
}

/** A buffer, cut into pieces of one size. */
class Chunk {
  readonly words: Uint32Array;
  readonly doubles: Float64Array;
  private readonly wordsEach: number;
  private readonly count: number;
  /** Freed pieces; those from `fresh` on have never been used. */
  private readonly returned: number[] = [];
  private fresh = 0;

  constructor(
    readonly bytesEach: number,
    count: number,
  ) {
    const buffer = new ArrayBuffer(bytesEach * count);
    this.words = new Uint32Array(buffer);
    this.doubles = new Float64Array(buffer);
    this.wordsEach = bytesEach >>> 2;
    this.count = count;
  }

  get isFull(): boolean {
    return this.fresh === this.count && this.returned.length === 0;
  }

  get isEmpty(): boolean {
    return this.fresh === this.returned.length;
  }

  /** First word of a piece that is free; the chunk must not be full. */
  take(): number {
    return this.returned.pop() ?? this.fresh++ * this.wordsEach;
  }

  giveBack(firstWord: number): void {
    this.words.fill(0, firstWord, firstWord + this.wordsEach);
    this.returned.push(firstWord);
  }
}

/** An allocator of pieces, for one owner or many. */
export class Slab {
  /** By size of piece: chunks that have room. */
  private readonly roomy = new Map<number, Set<Chunk>>();
  private used = 0;

  /** Bytes of the pieces in use. */
  get usedBytes(): number {
    return this.used;
  }

  /** @internal A chunk with room for a piece of at least so many bytes. */
  chunkFor(bytes: number): Chunk {
    if (bytes > LARGEST_CUT) return new Chunk(Math.ceil(bytes / LINE_BYTES) * LINE_BYTES, 1);
    const each = pieceBytes(bytes);
    let chunks = this.roomy.get(each);
    if (chunks === undefined) this.roomy.set(each, (chunks = new Set()));
    for (const chunk of chunks) return chunk;
    const chunk = new Chunk(each, Math.floor(CHUNK_BYTES / each));
    chunks.add(chunk);
    return chunk;
  }

  /** @internal A piece of the chunk has been taken. */
  onTaken(chunk: Chunk): void {
    this.used += chunk.bytesEach;
    if (chunk.isFull) this.roomy.get(chunk.bytesEach)?.delete(chunk);
  }

  /** @internal A piece of the chunk has been freed. One empty chunk of a size is kept. */
  onGivenBack(chunk: Chunk): void {
    this.used -= chunk.bytesEach;
    const chunks = chunk.bytesEach > LARGEST_CUT ? undefined : this.roomy.get(chunk.bytesEach);
    chunks?.add(chunk);
    if (chunk.isEmpty && chunks !== undefined && chunks.size > 1) chunks.delete(chunk);
  }
}

/**
 * A piece: words from `firstWord` on of `words`, and the same bytes as doubles. After it has been
 * freed, a piece that is still used reads undefined and its writes are lost. It never touches the
 * next owner's piece.
 */
export class Piece {
  /** Shared by all pieces of a chunk. */
  words: Uint32Array;
  doubles: Float64Array;
  readonly firstWord: number;
  private chunk: Chunk | undefined;

  /** @param bytes 1 or more; all of them are 0 */
  constructor(
    private readonly slab: Slab,
    bytes: number,
  ) {
    const chunk = slab.chunkFor(bytes);
    this.chunk = chunk;
    this.words = chunk.words;
    this.doubles = chunk.doubles;
    this.firstWord = chunk.take();
    slab.onTaken(chunk);
  }

  /** Index in `doubles` of the first eight bytes. */
  get firstDouble(): number {
    return this.firstWord >>> 1;
  }

  get isFree(): boolean {
    return this.chunk === undefined;
  }

  /** Frees the memory. Its owner must do so only once. */
  free(): void {
    const { chunk } = this;
    assert(chunk !== undefined, 'a piece of a slab is freed once');
    this.chunk = undefined;
    this.words = NO_WORDS;
    this.doubles = NO_DOUBLES;
    chunk.giveBack(this.firstWord);
    this.slab.onGivenBack(chunk);
  }
}
