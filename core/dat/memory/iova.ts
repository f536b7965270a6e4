/** Registration at an address that tells a peer nothing. */
import {
  type MemoryRegion,
  type ProtectionDomain,
  type Random,
  randomIova,
} from '../../spi/index.js';

/** The address does not agree with the memory; the library knows no address but the memory's. */
const REFUSALS: ReadonlySet<unknown> = new Set(['EINVAL', 'EOPNOTSUPP']);

/**
 * Registers at a random address; where the device wants address and memory to agree within a page,
 * or knows no other than the memory's own, at the provider's choice.
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
    if (!(error instanceof Error && 'code' in error && REFUSALS.has(error.code))) throw error;
    return pd.registerMemory(bytes, access);
  }
}
