/** SpiError → DatError, by the table below. */
import { isSpiError } from '../spi/errors/consumer-errors.js';
import type { SpiErrorCode } from '../spi/index.js';
import type { DatSubtype, DatType } from './dat/codes.js';
import { DatError } from './dat/dat-error.js';

/**
 * errno → DAT type and subtype: a table, after dapl's dapl_convert_errno. Where dapl gives a bare
 * type, the subtype that fits is filled in. Values that providers raise and dapl does not know (it
 * calls them DAT_INTERNAL_ERROR) are below the line.
 */
export const DAT_BY_ERRNO: Readonly<Record<SpiErrorCode, readonly [DatType, DatSubtype?]>> = {
  EOVERFLOW: ['DAT_LENGTH_ERROR'],
  EACCES: ['DAT_PRIVILEGES_VIOLATION'],
  EPERM: ['DAT_PROTECTION_VIOLATION'],
  EINVAL: ['DAT_INVALID_PARAMETER'],
  EISCONN: ['DAT_INVALID_STATE', 'DAT_INVALID_STATE_EP_CONNECTED'],
  ECONNREFUSED: ['DAT_INVALID_STATE', 'DAT_INVALID_STATE_EP_NOTREADY'],
  ETIMEDOUT: ['DAT_TIMEOUT_EXPIRED'],
  ENETUNREACH: ['DAT_INVALID_ADDRESS', 'DAT_INVALID_ADDRESS_UNREACHABLE'],
  EADDRINUSE: ['DAT_CONN_QUAL_IN_USE'],
  EALREADY: ['DAT_INVALID_STATE', 'DAT_INVALID_STATE_EP_ACTCONNPENDING'],
  ENOMEM: ['DAT_INSUFFICIENT_RESOURCES', 'DAT_RESOURCE_MEMORY'],
  EAGAIN: ['DAT_QUEUE_EMPTY'],
  EINTR: ['DAT_INTERRUPTED_CALL', 'DAT_SUB_INTERRUPTED'],
  EAFNOSUPPORT: ['DAT_INVALID_ADDRESS', 'DAT_INVALID_ADDRESS_MALFORMED'],
  // Ours.
  EBUSY: ['DAT_INVALID_STATE'],
  ENODEV: ['DAT_PROVIDER_NOT_FOUND'],
  EADDRNOTAVAIL: ['DAT_INVALID_ADDRESS', 'DAT_INVALID_ADDRESS_UNSUPPORTED'],
  EHOSTUNREACH: ['DAT_INVALID_ADDRESS', 'DAT_INVALID_ADDRESS_UNREACHABLE'],
  ENOTCONN: ['DAT_INVALID_STATE', 'DAT_INVALID_STATE_EP_UNCONNECTED'],
  EOPNOTSUPP: ['DAT_MODEL_NOT_SUPPORTED'],
  EIO: ['DAT_INTERNAL_ERROR'],
};

/** Knowledge of the caller that takes precedence over the errno. */
export interface SpiErrorContext {
  readonly operation: string;
  readonly value?: unknown;
  /** Advice for these errno values, where the provider gives none. */
  readonly hints?: Partial<Record<SpiErrorCode, string>>;
  /** Replaces the table's type and subtype for these errno values. */
  readonly map?: Partial<Record<SpiErrorCode, readonly [DatType, DatSubtype?]>>;
}

const MISTAKE = 'a mistake in a provider, a module or dapl: `cause` has its stack';

/**
 * The DatError for an error of an SPI call. A DatError passes through; an unknown error becomes
 * DAT_INTERNAL_ERROR. The original is the `cause`.
 */
export function toDatError(error: unknown, context: SpiErrorContext): DatError {
  if (DatError.isDatError(error)) return error;
  const spi = isSpiError(error) && error.code in DAT_BY_ERRNO ? error : undefined;
  const [code, subtype] = spi
    ? (context.map?.[spi.code] ?? DAT_BY_ERRNO[spi.code])
    : (['DAT_INTERNAL_ERROR'] as const);
  const hint = spi ? (spi.hint ?? context.hints?.[spi.code]) : MISTAKE;
  return new DatError(code, {
    ...(subtype !== undefined && { subtype }),
    ...('value' in context && { value: context.value }),
    hint,
    operation: context.operation,
    message: error instanceof Error ? error.message : String(error),
    cause: error,
  });
}

/** Runs an SPI call and turns its errors into DatErrors. */
export function spiCall<T>(context: SpiErrorContext, call: () => T): T {
  try {
    return call();
  } catch (error) {
    throw toDatError(error, context);
  }
}
