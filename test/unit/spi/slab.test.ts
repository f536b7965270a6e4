import assert from 'node:assert/strict';
import { Piece, Slab, pieceBytes } from '../../../core/spi/internal/index.js';
import { SeededRandom } from '../../../providers/mock/index.js';

function wordsOf(piece: Piece, bytes: number): Uint32Array {
  return piece.words.subarray(piece.firstWord, piece.firstWord + (bytes >>> 2));
}

describe('Slab', () => {
  it('has sizes of whole cache lines that waste a quarter at most', () => {
    for (let bytes = 1; bytes <= 20_000; bytes++) {
      const size = pieceBytes(bytes);
      assert.ok(size >= bytes && size % 64 === 0, `${bytes}: ${size}`);
      assert.ok(size - bytes < Math.max(64, bytes / 4), `${bytes}: ${size}`);
      assert.ok(size >= pieceBytes(Math.max(1, bytes - 1)));
    }
  });

  it('gives out pieces that do not overlap, aligned for doubles, cleared when used again', () => {
    const random = new SeededRandom(5);
    const slab = new Slab();
    const live: { piece: Piece; bytes: number; mark: number }[] = [];
    let used = 0;
    for (let step = 1; step <= 20_000; step++) {
      if (live.length < 300 && random.below(5) > 1) {
        const bytes = 1 + random.below(random.below(50) === 0 ? 40_000 : 2000);
        const piece = new Piece(slab, bytes);
        assert.equal(piece.firstWord % 2, 0);
        assert.ok(
          wordsOf(piece, bytes).every((word) => word === 0),
          'cleared',
        );
        wordsOf(piece, bytes).fill(step);
        live.push({ piece, bytes, mark: step });
      } else if (live.length > 0) {
        const [{ piece, bytes, mark }] = live.splice(random.below(live.length), 1) as [
          (typeof live)[0],
        ];
        assert.ok(
          wordsOf(piece, bytes).every((word) => word === mark),
          'nobody else wrote there',
        );
        piece.free();
      }
    }
    for (const { piece } of live) {
      used += 1;
      piece.free();
    }
    assert.ok(used > 0);
    assert.equal(slab.usedBytes, 0);
  });

  it('shows the same bytes as doubles', () => {
    const piece = new Piece(new Slab(), 100);
    new Piece(new Slab(), 8);
    piece.doubles[piece.firstDouble + 3] = -Infinity;
    assert.deepEqual([...wordsOf(piece, 32)].slice(6), [0, 0xfff00000]);
  });

  it('uses again what was freed, and buffers only as it grows', () => {
    const slab = new Slab();
    const buffers = new Set<ArrayBufferLike>();
    for (let round = 0; round < 20; round++) {
      const pieces = Array.from({ length: 500 }, () => new Piece(slab, 1400));
      for (const piece of pieces) buffers.add(piece.words.buffer);
      // All but one: a chunk with a piece in use stays.
      for (const piece of pieces) piece.free();
    }
    // 42 pieces of 1536 bytes to a chunk; one empty chunk is kept from round to round.
    assert.ok(buffers.size <= 12 + 19 * 11, `${buffers.size} buffers`);
    const kept = new Piece(slab, 1400);
    const first = new Piece(slab, 1400);
    const place = first.firstWord;
    first.free();
    const again = new Piece(slab, 1400);
    assert.equal(again.firstWord, place);
    assert.equal(again.words, kept.words);
  });

  it('gives what is large a buffer of its own', () => {
    const slab = new Slab();
    const one = new Piece(slab, 20_000);
    const other = new Piece(slab, 20_000);
    assert.notEqual(one.words.buffer, other.words.buffer);
    assert.equal(one.words.byteLength, 20_032);
    one.free();
    assert.equal(slab.usedBytes, 20_032);
    other.free();
    assert.equal(slab.usedBytes, 0);
  });

  it('takes a piece back once', () => {
    const slab = new Slab();
    const piece = new Piece(slab, 64);
    piece.free();
    assert.equal(piece.isFree, true);
    assert.throws(() => piece.free(), /is freed once/);
    const [a, b] = [new Piece(slab, 64), new Piece(slab, 64)];
    assert.notEqual(a.firstWord, b.firstWord);
  });

  it('what was freed reads as nothing and harms nobody', () => {
    const slab = new Slab();
    const stale = new Piece(slab, 64);
    stale.free();
    const next = new Piece(slab, 64);
    assert.equal(next.firstWord, stale.firstWord);
    next.words[next.firstWord] = 7;
    assert.equal(stale.words[stale.firstWord], undefined);
    stale.words[stale.firstWord] = 9;
    stale.doubles[stale.firstDouble] = 9;
    assert.equal(next.words[next.firstWord], 7);
  });
});
