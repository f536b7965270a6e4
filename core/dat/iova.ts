/** Registration at an address that tells a peer nothing. */
import { type MemoryRegion, type ProtectionDomain, type Random, randomIova } from '../spi/index.js';

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
