/** SpiError → DatError: dapl's errno table with subtypes filled in (DAT facts 3.6). */
import { SpiError, type SpiErrorCode } from '../spi/index.js';
import type { DatSubtype, DatType } from './codes.js';
import { DatError } from './dat-error.js';

const BY_ERRNO: Readonly<Record<SpiErrorCode, readonly [DatType, DatSubtype?]>> = {
  EINVAL: ['DAT_INVALID_PARAMETER'],
  ENOMEM: ['DAT_INSUFFICIENT_RESOURCES', 'DAT_RESOURCE_MEMORY'],
  EBUSY: ['DAT_INVALID_STATE'],
  EPERM: ['DAT_PROTECTION_VIOLATION'],
  EACCES: ['DAT_PRIVILEGES_VIOLATION'],
  ENODEV: ['DAT_PROVIDER_NOT_FOUND'],
  EADDRINUSE: ['DAT_CONN_QUAL_IN_USE'],
  EADDRNOTAVAIL: ['DAT_INVALID_ADDRESS', 'DAT_INVALID_ADDRESS_UNSUPPORTED'],
  ENETUNREACH: ['DAT_INVALID_ADDRESS', 'DAT_INVALID_ADDRESS_UNREACHABLE'],
  EHOSTUNREACH: ['DAT_INVALID_ADDRESS', 'DAT_INVALID_ADDRESS_UNREACHABLE'],
  ECONNREFUSED: ['DAT_INVALID_STATE', 'DAT_INVALID_STATE_EP_NOTREADY'],
  ETIMEDOUT: ['DAT_TIMEOUT_EXPIRED'],
  EOVERFLOW: ['DAT_LENGTH_ERROR'],
  EISCONN: ['DAT_INVALID_STATE', 'DAT_INVALID_STATE_EP_CONNECTED'],
  ENOTCONN: ['DAT_INVALID_STATE', 'DAT_INVALID_STATE_EP_UNCONNECTED'],
  EOPNOTSUPP: ['DAT_MODEL_NOT_SUPPORTED'],
  EIO: ['DAT_INTERNAL_ERROR'],
};

/** What the caller knows better than the errno does. */
export interface SpiErrorContext {
  readonly operation: string;
  readonly value?: unknown;
  readonly hint?: string;
  /** Replaces the table's type and subtype for these errno values. */
  readonly map?: Partial<Record<SpiErrorCode, readonly [DatType, DatSubtype?]>>;
}

/**
 * The DatError for whatever an SPI call threw. A DatError passes through; what is neither becomes
 * DAT_INTERNAL_ERROR. The original is the `cause`.
 */
export function toDatError(error: unknown, context: SpiErrorContext): DatError {
  if (DatError.isDatError(error)) return error;
  const spi = isSpiError(error) ? error : undefined;
  const [code, subtype] = spi
    ? (context.map?.[spi.code] ?? BY_ERRNO[spi.code])
    : (['DAT_INTERNAL_ERROR'] as const);
  return new DatError(code, {
    ...(subtype !== undefined && { subtype }),
    ...('value' in context && { value: context.value }),
    ...(context.hint !== undefined && { hint: context.hint }),
    operation: context.operation,
    message: error instanceof Error ? error.message : String(error),
    cause: error,
  });
}

/** Runs an SPI call and turns what it throws into a DatError. */
export function spiCall<T>(context: SpiErrorContext, call: () => T): T {
  try {
    return call();
  } catch (error) {
    throw toDatError(error, context);
  }
}

/** By name and code, so that a plugin may carry its own copy of the SDK. */
function isSpiError(error: unknown): error is SpiError {
  if (error instanceof SpiError) return true;
  return (
    error instanceof Error &&
    error.name === 'SpiError' &&
    'code' in error &&
    typeof error.code === 'string' &&
    error.code in BY_ERRNO
  );
}
