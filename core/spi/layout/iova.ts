/**
 * Virtual addresses of memory regions: random and page-aligned, so that they tell a peer nothing.
 */
import type { Random } from '../time/clock.js';

const PAGE_MASK = 0xfffff000;
/** Like a user-space pointer: 47 bits, and never in the lowest 4 GiB. */
const HIGH_MASK = 0x7fff;

/** An address for the first byte of a region. */
export function randomIova(random: Random): bigint {
  const high = (random.u32() & HIGH_MASK) | 1;
  const low = (random.u32() & PAGE_MASK) >>> 0;
  return (BigInt(high) << 32n) | BigInt(low);
}
