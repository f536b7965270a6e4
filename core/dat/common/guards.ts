/** Checks of parameters. Each throws a DatError that names the value and the limit. */
import { DatError, type DatSubtype, type DatType } from '../../errors/index.js';
import { show } from './show.js';

/** Which parameter of which call: the n-th, as DAT counts arguments. */
export function invalid(
  operation: string,
  position: number,
  name: string,
  value: unknown,
  expected: string,
  code: DatType = 'DAT_INVALID_PARAMETER',
  subtype?: DatSubtype,
): DatError {
  return new DatError(code, {
    subtype: subtype ?? (`DAT_INVALID_ARG${position}` as DatSubtype),
    operation,
    message: `${name} is ${show(value)}; it must be ${expected}`,
    value,
  });
}

/** An integer from `min` to `max`. */
export function checkInteger(
  operation: string,
  position: number,
  name: string,
  value: unknown,
  min: number,
  max: number,
): asserts value is number {
  if (typeof value === 'number' && Number.isSafeInteger(value) && value >= min && value <= max) {
    return;
  }
  throw invalid(operation, position, name, value, `an integer from ${min} to ${max}`);
}

/** One of the values of a table of constants. */
export function checkOneOf(
  operation: string,
  position: number,
  name: string,
  value: unknown,
  allowed: readonly unknown[],
): void {
  if (allowed.includes(value)) return;
  throw invalid(operation, position, name, value, `one of ${allowed.map(show).join(', ')}`);
}

/** A number without bits outside `mask`; bit operators alone would not see those from 2^32 on. */
export function isBitSet(value: unknown, mask: number): value is number {
  return (
    Number.isInteger(value) &&
    (value as number) >= 0 &&
    ((value as number) & ~mask) === 0 &&
    (value as number) <= mask
  );
}

/** A bit set without bits outside `mask`. */
export function checkBits(
  operation: string,
  position: number,
  name: string,
  value: unknown,
  mask: number,
  expected: string,
): asserts value is number {
  if (isBitSet(value, mask)) return;
  throw invalid(operation, position, name, value, expected);
}

/** An options object without unknown keys. */
export function checkOptions(
  operation: string,
  position: number,
  value: unknown,
  known: readonly string[],
): asserts value is Readonly<Record<string, unknown>> {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw invalid(operation, position, 'options', value, 'an object');
  }
  for (const key of Object.keys(value)) {
    if (known.includes(key)) continue;
    throw invalid(operation, position, 'an option', key, `one of ${known.join(', ')}`);
  }
}

/**
 * Private data: bytes up to a limit; absent is empty.
 * @param position of the bytes; DAT has their number in front of them
 */
export function checkPrivateData(
  operation: string,
  position: number,
  value: unknown,
  maxBytes: number,
): Uint8Array {
  if (value === undefined) return new Uint8Array(0);
  if (!(value instanceof Uint8Array)) {
    throw invalid(operation, position, 'privateData', value, 'a Uint8Array');
  }
  if (value.length > maxBytes) {
    throw new DatError('DAT_INVALID_PARAMETER', {
      subtype: `DAT_INVALID_ARG${position - 1}` as DatSubtype,
      operation,
      message: `privateData has ${value.length} bytes; at most ${maxBytes} fit`,
      value: value.length,
    });
  }
  return value;
}

/** A timeout in milliseconds: positive, `Infinity` allowed. */
export function checkTimeout(
  operation: string,
  position: number,
  name: string,
  value: unknown,
): asserts value is number {
  if (typeof value === 'number' && value > 0) return;
  throw invalid(operation, position, name, value, 'a number of milliseconds above 0, or Infinity');
}

/** Options of a query of counters: whether they begin again at 0. */
export function checkReset(operation: string, options: unknown): boolean {
  checkOptions(operation, 4, options, ['reset']);
  const { reset = false } = options;
  if (typeof reset === 'boolean') return reset;
  throw invalid(operation, 4, 'reset', reset, 'a boolean');
}
