/**
 * Errors for consumers from functions of plugins that they call themselves, before core can turn an
 * error of the contract (SpiError) into a DatError.
 */
import { DatError } from '../../errors/dat/dat-error.js';
import { mustBe, type Refuse } from '../checks/index.js';
import { SpiError } from './spi-error.js';

/** For checks of options. @param operation the consumer's call: `softroce` */
export function refusing(operation: string): Refuse {
  return (name, value, expected) => invalid(operation, mustBe(name, value, expected), value);
}

/**
 * Runs a call that checks by `einval`. Its errors become DAT_INVALID_PARAMETER for the consumer,
 * with the same words.
 * @throws DatError, or whatever else the call throws
 */
export function consumerCall<T>(operation: string, call: () => T): T {
  try {
    return call();
  } catch (error) {
    if (!isSpiError(error) || error.code !== 'EINVAL') throw error;
    throw invalid(operation, error.message, undefined, error);
  }
}

/** Tests name and code, so that a plugin may carry its own copy of the SDK. */
export function isSpiError(error: unknown): error is SpiError {
  if (error instanceof SpiError) return true;
  return error instanceof Error && error.name === 'SpiError' && 'code' in error;
}

function invalid(operation: string, message: string, value: unknown, cause?: unknown): DatError {
  return new DatError('DAT_INVALID_PARAMETER', {
    subtype: 'DAT_INVALID_ARG1',
    operation,
    message,
    value,
    ...(cause !== undefined && { cause }),
  });
}
