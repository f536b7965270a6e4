/** The memory of a side: an area of every kind of right, and what fills it. */
import { Access } from '../../core/spi/index.js';
import { SeededRandom } from '../../providers/mock/index.js';
import { type Area, GUARD_BYTE, GuardedMemory } from './guarded-memory.js';

export const SLOT_BYTES = 1600;
export const SLOTS = 8;
export const WORD_COUNT = 8;
export const WINDOW_SLOTS = 4;
/** The window opens this part of its region. */
export const WINDOW = { at: SLOT_BYTES, length: WINDOW_SLOTS * SLOT_BYTES } as const;
export const REMOTE = Access.REMOTE_READ | Access.REMOTE_WRITE | Access.REMOTE_ATOMIC;
/** Room for the GRH of datagrams. */
export const RECEIVE_BYTES = SLOT_BYTES + 40;

export const LENGTHS = {
  source: 2 * SLOT_BYTES,
  /** The peer may do anything here. */
  target: SLOTS * SLOT_BYTES,
  words: 8 * WORD_COUNT,
  /** The peer may read. */
  constant: 2 * SLOT_BYTES,
  /** What is open of it is open through a window. */
  windowed: (WINDOW_SLOTS + 2) * SLOT_BYTES,
  /** Registered, and open to no peer. */
  secret: SLOT_BYTES,
  /** Open to peers, but of another protection domain. */
  foreign: SLOT_BYTES,
  /** Receives and landings are granted one at a time, by work requests. */
  receives: SLOTS * (RECEIVE_BYTES + 64),
  landings: SLOTS * (SLOT_BYTES + 64),
} as const;
export type AreaName = keyof typeof LENGTHS;

// prettier-ignore
export const RIGHTS: Readonly<Record<AreaName, number>> = {
  source:   0,
  target:   Access.LOCAL_WRITE | REMOTE,
  words:    Access.LOCAL_WRITE | Access.REMOTE_ATOMIC,
  constant: Access.REMOTE_READ,
  windowed: Access.LOCAL_WRITE | Access.MW_BIND,
  secret:   Access.LOCAL_WRITE,
  foreign:  Access.LOCAL_WRITE | REMOTE,
  receives: Access.LOCAL_WRITE,
  landings: Access.LOCAL_WRITE,
};

/** Bytes without a pattern, made once: memory is made often. */
const CONTENT = new SeededRandom(1).bytes(1 << 16);

function content(random: SeededRandom, length: number): Uint8Array {
  const at = random.below(CONTENT.length - length);
  return CONTENT.subarray(at, at + length);
}

/** All areas of a side, with guards around each. */
export function sideMemory(
  name: string,
  random: SeededRandom,
): { readonly memory: GuardedMemory; readonly areas: Readonly<Record<AreaName, Area>> } {
  return GuardedMemory.make(name, LENGTHS, (key, bytes) => {
    if (key === 'secret' || key === 'foreign') bytes.fill(GUARD_BYTE);
    else bytes.set(content(random, bytes.length));
  });
}
