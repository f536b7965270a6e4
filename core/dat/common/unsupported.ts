/** Errors for features that a provider lacks and resources that it has run out of. */
import { DatError, type DatSubtype } from '../../errors/index.js';
import type { Device, DeviceCapability } from '../../spi/index.js';

/** The error of a call that this provider, or any in user space, does not support. */
export function notSupported(operation: string, message: string, hint?: string): DatError {
  return new DatError('DAT_MODEL_NOT_SUPPORTED', { operation, message, hint });
}

/**
 * @param what it is called, where that is not the name of the capability
 * @throws DatError DAT_MODEL_NOT_SUPPORTED
 */
export function requireCapability(
  operation: string,
  { name, capabilities }: Device,
  capability: DeviceCapability,
  what?: string,
): void {
  if (capabilities.has(capability)) return;
  const lacks = what === undefined ? `lacks the capability '${capability}'` : `has no ${what}`;
  throw notSupported(operation, `device ${name} ${lacks}`);
}

const outOf = (
  subtype: DatSubtype,
): { readonly ENOMEM: readonly [typeof EXHAUSTED, DatSubtype] } => ({
  ENOMEM: [EXHAUSTED, subtype],
});
const EXHAUSTED = 'DAT_INSUFFICIENT_RESOURCES';

/** The error when the device can create no more of an object: `map` of an SPI call. */
export const OUT_OF = {
  zones: outOf('DAT_RESOURCE_PROTECTION_DOMAIN'),
  regions: outOf('DAT_RESOURCE_MEMORY_REGION'),
  /** DAT has no subtype for memory windows alone. */
  windows: outOf('DAT_RESOURCE_MEMORY_REGION'),
  sharedReceives: outOf('DAT_RESOURCE_SRQ'),
  queuePairs: outOf('DAT_RESOURCE_TEP'),
} as const;
