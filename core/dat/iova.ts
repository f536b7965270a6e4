/**
 * Virtual addresses of memory regions: random and page-aligned, so that they tell a peer nothing.
 */
import type { MemoryRegion, ProtectionDomain, Random } from '../spi/index.js';

const PAGE_MASK = 0xfffff000;
/** Like a user-space pointer: 47 bits, and never in the lowest 4 GiB. */
const HIGH_MASK = 0x7fff;

/**
 * Registers at a random address; where the device wants address and memory to agree within a page,
 * at the provider's choice.
 * @throws SpiError
 */
export function registerAtRandom(
  pd: ProtectionDomain,
  bytes: Uint8Array,
  access: number,
  random: Random,
): MemoryRegion {
  try {
    return pd.registerMemory(bytes, access, randomIova(random));
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'EINVAL')) throw error;
    return pd.registerMemory(bytes, access);
  }
}

function randomIova(random: Random): bigint {
  const high = (random.u32() & HIGH_MASK) | 1;
  const low = (random.u32() & PAGE_MASK) >>> 0;
  return (BigInt(high) << 32n) | BigInt(low);
}
