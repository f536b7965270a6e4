import assert from 'node:assert/strict';
import { RING_HEADER_BYTES, Ring, ringEntries } from '../../../core/spi/index.js';

/** A ring of 4 entries of 3 words, from word 10 of a memory that is 7s all over. */
function placed(): { words: Uint32Array; ring: Ring } {
  const words = new Uint32Array(40).fill(7);
  words.fill(0, 2, 4);
  return {
    words,
    ring: new Ring({ words, producerWord: 2, consumerWord: 3, firstWord: 10 }, 4, 12),
  };
}

describe('Ring', () => {
  it('rounds the number of entries up to a power of two', () => {
    const given = [0, 1, 2, 3, 4, 5, 8, 9, 1000, 2 ** 22, 2 ** 22 + 1];
    assert.deepEqual(given.map(ringEntries), [1, 1, 2, 4, 4, 8, 8, 16, 1024, 2 ** 22, 2 ** 23]);
  });

  it('in a buffer of its own lies behind its indices, a cache line apart', () => {
    const ring = Ring.allocate(8, 64);
    assert.equal(ring.buffer.byteLength, RING_HEADER_BYTES + 8 * 64);
    ring.producer = 0xfffffffe;
    ring.consumer = 0xfffffffd;
    const all = new Uint32Array(ring.buffer);
    assert.deepEqual([all[0], all[16]], [0xfffffffe, 0xfffffffd]);
    assert.equal(ring.length, 1);
    assert.equal(ring.byteOf(9), RING_HEADER_BYTES + 64);
    assert.equal(ring.wordOf(9) * 4, ring.byteOf(9));
  });

  it('is atomic in shared memory, with the same places', () => {
    const ring = new Ring(new SharedArrayBuffer(Ring.bytes(2, 64)), 2, 64);
    ring.producer = 0xffffffff;
    assert.equal(ring.producer, 0xffffffff);
    assert.equal(new Uint32Array(ring.buffer)[0], 0xffffffff);
  });

  it('lies where it is told, and touches nothing else', () => {
    const { words, ring } = placed();
    assert.deepEqual([ring.entries, ring.strideBytes, ring.wordOf(5)], [4, 12, 13]);
    ring.producer = 5;
    ring.consumer = 3;
    assert.equal(ring.length, 2);
    for (let i = 0; i < 8; i++) ring.words.fill(100 + i, ring.wordOf(i), ring.wordOf(i) + 3);
    const others = [...words].map((_, at) => at).filter((at) => words[at] === 7);
    const expected = [...words]
      .map((_, at) => at)
      .filter((at) => (at < 10 && at >>> 1 !== 1) || at >= 22);
    assert.deepEqual(others, expected);
  });

  it('takes over the entries of another one, wherever both lie', () => {
    const { words, ring } = placed();
    const from = Ring.allocate(4, 12);
    for (let i = 0; i < 4; i++) from.words.fill(i + 1, from.wordOf(i), from.wordOf(i) + 3);
    ring.copyEntries(from);
    assert.deepEqual([...words.subarray(9, 23)], [7, 1, 1, 1, 2, 2, 2, 3, 3, 3, 4, 4, 4, 7]);
    assert.equal(ring.producer, 0);
  });

  it('that has ended is nowhere', () => {
    const { words, ring } = placed();
    ring.end();
    ring.producer = 9;
    ring.words[ring.wordOf(0)] = 9;
    assert.ok(!words.includes(9));
    assert.deepEqual([ring.producer, ring.consumer, ring.length], [0, 0, 0]);
  });

  it('refuses bad sizes and memory that is too small', () => {
    assert.throws(() => Ring.allocate(3, 64), /power of two/);
    assert.throws(() => Ring.allocate(4, 6), /multiple of 4/);
    assert.throws(() => new Ring(new ArrayBuffer(128), 1, 64), /128 bytes; 192 needed/);
    const words = new Uint32Array(16);
    const place = { words, producerWord: 0, consumerWord: 1, firstWord: 2 };
    assert.throws(() => new Ring(place, 4, 16), /64 bytes; 72 needed/);
  });
});
