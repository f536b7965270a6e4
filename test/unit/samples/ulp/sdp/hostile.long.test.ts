import assert from 'node:assert/strict';
import { SeededRandom } from '../../../../../providers/mock/index.js';
import { PairLife } from './pair-life.js';

/** Messages that are changed on their way, one in so many. */
const MESSAGES = 100_000;
const ONE_IN = 3;

/** What a hostile peer may send in place of a message. */
const CHANGES: readonly ((bytes: Uint8Array, random: SeededRandom) => Uint8Array)[] = [
  (bytes, random) => flip(bytes, random.below(bytes.length), 1 << random.below(8)),
  // The fields of the header: kind, flags, receives, length, numbers.
  (bytes, random) => set(bytes, random.pick([0, 1, 2, 3]), random.below(256)),
  (bytes, random) => set(bytes, random.pick([7, 11, 15]), random.below(256)),
  (bytes, random) => set(bytes, 0, random.pick(KINDS)),
  // That of an extension.
  (bytes, random) =>
    set(bytes, Math.min(bytes.length - 1, 16 + random.below(20)), random.below(256)),
  // Less than it says, more than it says, nothing.
  (bytes, random) => bytes.slice(0, random.below(bytes.length)),
  (bytes, random) => Uint8Array.of(...bytes, ...random.bytes(1 + random.below(8))),
  // A kind of its own, with a length that fits.
  (bytes, random) => whole(bytes, random),
];
const KINDS = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 0xa, 0xb, 0xc, 0xd, 0xe, 0xfd, 0xfe, 0xff, 0x42];
const EXTENSIONS: Readonly<Record<number, number>> = {
  5: 4,
  6: 4,
  7: 4,
  0xb: 4,
  0xc: 4,
  0xd: 8,
  0xfd: 20,
  0xfe: 16,
};

function set(bytes: Uint8Array, at: number, value: number): Uint8Array {
  const changed = bytes.slice();
  changed[at] = value;
  return changed;
}

function flip(bytes: Uint8Array, at: number, mask: number): Uint8Array {
  return set(bytes, at, (bytes[at] as number) ^ mask);
}

function whole(bytes: Uint8Array, random: SeededRandom): Uint8Array {
  const kind = random.pick(KINDS);
  const extension = EXTENSIONS[kind] ?? 0;
  const changed = new Uint8Array(16 + extension + (kind >= 0xfd ? random.below(8) : 0));
  changed.set(bytes.subarray(0, 16));
  changed.set(random.bytes(extension), 16);
  changed[0] = kind;
  new DataView(changed.buffer).setUint32(4, changed.length);
  return changed;
}

describe('sdp: a hostile peer', () => {
  it(`${MESSAGES} changed messages end that connection at most, by the protocol's error`, () => {
    const endings = new Map<string, number>();
    let changed = 0;
    for (let seed = 1; changed < MESSAGES; seed++) {
      const random = new SeededRandom(seed);
      const life = new PairLife(seed, { isGentle: true, isHostile: true });
      const [victim] = life.hosts;
      victim.mutate = (bytes) => {
        if (random.below(ONE_IN) > 0) return bytes;
        changed++;
        return random.pick(CHANGES)(bytes, random);
      };
      assert.deepEqual(life.run(), [], `seed ${seed}`);
      const code = victim.overs[0]?.code ?? 'in order';
      endings.set(code, (endings.get(code) ?? 0) + 1);
    }
    // Most are noticed; what is a valid message in its place cannot be.
    assert.ok((endings.get('EPROTO') ?? 0) > 100, JSON.stringify([...endings]));
  });
});
