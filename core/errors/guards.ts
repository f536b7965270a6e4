/** Checks of parameters of DAT calls. Each throws a DatError that names the value and the limit. */
import {
  BOOLEAN,
  BYTES,
  checkNames,
  checkOptions as checkTable,
  expectedOf,
  integerText,
  isBitSet,
  isInteger,
  isU64,
  type Kind,
  type Kinds,
  mustBe,
  oneOf,
  type Refuse,
} from '../spi/checks/index.js';
import type { DatSubtype } from './dat/codes.js';
import { DatError } from './dat/dat-error.js';

/** The error for the n-th parameter of a call, as DAT counts arguments. */
export function invalid(
  operation: string,
  position: number,
  name: string,
  value: unknown,
  expected: string,
): DatError {
  const message = mustBe(name, value, expected);
  return invalidArgument(operation, position, message, value);
}

/** As `invalid`, with a ready message. */
function invalidArgument(
  operation: string,
  position: number,
  message: string,
  value: unknown,
): DatError {
  const subtype = `DAT_INVALID_ARG${position}` as DatSubtype;
  return new DatError('DAT_INVALID_PARAMETER', { subtype, operation, message, value });
}

function refusalAt(operation: string, position: number): Refuse {
  return (name, value, expected) => invalid(operation, position, name, value, expected);
}

export function checkValue<T>(
  operation: string,
  position: number,
  name: string,
  value: unknown,
  kind: Kind<T>,
): asserts value is T {
  if (kind.accepts(value)) return;
  throw invalid(operation, position, name, value, expectedOf(kind, value));
}

/** Checks a condition that only the caller knows. */
export function checkParameter(
  operation: string,
  position: number,
  name: string,
  value: unknown,
  holds: boolean,
  expected: string,
): void {
  if (!holds) throw invalid(operation, position, name, value, expected);
}

/** Checks for an integer from `min` to `max`. For hot paths: allocates only on failure. */
export function checkInteger(
  operation: string,
  position: number,
  name: string,
  value: unknown,
  min: number,
  max: number,
): asserts value is number {
  if (isInteger(value, min, max)) return;
  throw invalid(operation, position, name, value, integerText(min, max));
}

/** For hot paths, as `checkInteger`. */
export function checkU64(
  operation: string,
  position: number,
  name: string,
  value: unknown,
): asserts value is bigint {
  if (isU64(value)) return;
  throw invalid(operation, position, name, value, 'a bigint from 0 to 2^64 - 1');
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
  throw invalid(operation, position, name, value, expectedOf(oneOf(allowed), value));
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
  if (!isBitSet(value, mask)) throw invalid(operation, position, name, value, expected);
}

/** An options object without unknown keys. */
export function checkOptions(
  operation: string,
  position: number,
  value: unknown,
  known: readonly string[],
): void {
  checkNames(value, known, refusalAt(operation, position));
}

/** Checks for an options object without unknown keys, and its values by the table. */
export function checkFields<T extends object>(
  operation: string,
  position: number,
  value: T,
  kinds: Kinds<T>,
): void {
  checkTable(value, kinds, refusalAt(operation, position));
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
  checkValue(operation, position, 'privateData', value, BYTES);
  if (value.length <= maxBytes) return value;
  const message = `privateData has ${value.length} bytes; at most ${maxBytes} fit`;
  throw invalidArgument(operation, position - 1, message, value.length);
}

/** Checks the options of a query of counters. */
export function checkReset(operation: string, options: { readonly reset?: boolean }): boolean {
  checkOptions(operation, 4, options, ['reset']);
  const { reset = false } = options;
  checkValue(operation, 4, 'reset', reset, BOOLEAN);
  return reset;
}
