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
import { argumentSubtype } from './call-arguments.js';
import { DatError } from './dat/dat-error.js';

/**
 * The error for a parameter of a call.
 * @param argument that the parameter is a part of, where its name does not say so
 */
export function invalid(
  operation: string,
  name: string,
  value: unknown,
  expected: string,
  argument = name,
): DatError {
  return invalidArgument(operation, argument, mustBe(name, value, expected), value);
}

/** As `invalid`, with a ready message. */
export function invalidArgument(
  operation: string,
  argument: string,
  message: string,
  value: unknown,
): DatError {
  const subtype = argumentSubtype(operation, argument);
  return new DatError('DAT_INVALID_PARAMETER', { subtype, operation, message, value });
}

function refusal(operation: string, argument: string): Refuse {
  return (name, value, expected) => invalid(operation, name, value, expected, argument);
}

export function checkValue<T>(
  operation: string,
  name: string,
  value: unknown,
  kind: Kind<T>,
  argument = name,
): asserts value is T {
  if (kind.accepts(value)) return;
  throw invalid(operation, name, value, expectedOf(kind, value), argument);
}

/** Checks a condition that only the caller knows. */
export function checkParameter(
  operation: string,
  name: string,
  value: unknown,
  holds: boolean,
  expected: string,
): void {
  if (!holds) throw invalid(operation, name, value, expected);
}

/** Checks for an integer from `min` to `max`. For hot paths: allocates only on failure. */
export function checkInteger(
  operation: string,
  name: string,
  value: unknown,
  min: number,
  max: number,
  argument = name,
): asserts value is number {
  if (isInteger(value, min, max)) return;
  throw invalid(operation, name, value, integerText(min, max), argument);
}

/** For hot paths, as `checkInteger`. */
export function checkU64(operation: string, name: string, value: unknown): asserts value is bigint {
  if (isU64(value)) return;
  throw invalid(operation, name, value, 'a bigint from 0 to 2^64 - 1');
}

/** One of the values of a table of constants. */
export function checkOneOf(
  operation: string,
  name: string,
  value: unknown,
  allowed: readonly unknown[],
): void {
  if (allowed.includes(value)) return;
  throw invalid(operation, name, value, expectedOf(oneOf(allowed), value));
}

/** A bit set without bits outside `mask`. */
export function checkBits(
  operation: string,
  name: string,
  value: unknown,
  mask: number,
  expected: string,
  argument = name,
): asserts value is number {
  if (!isBitSet(value, mask)) throw invalid(operation, name, value, expected, argument);
}

/** An options object without unknown keys. */
export function checkOptions(
  operation: string,
  value: unknown,
  known: readonly string[],
  argument = 'options',
): void {
  checkNames(value, known, refusal(operation, argument));
}

/** Checks for an options object without unknown keys, and its values by the table. */
export function checkFields<T extends object>(operation: string, value: T, kinds: Kinds<T>): void {
  checkTable(value, kinds, refusal(operation, 'options'));
}

/** Private data: bytes up to a limit; absent is empty. */
export function checkPrivateData(operation: string, value: unknown, maxBytes: number): Uint8Array {
  if (value === undefined) return new Uint8Array(0);
  checkValue(operation, 'privateData', value, BYTES);
  if (value.length <= maxBytes) return value;
  const message = `privateData has ${value.length} bytes; at most ${maxBytes} fit`;
  throw invalidArgument(operation, 'size', message, value.length);
}

/** Checks the options of a query of counters. */
export function checkReset(operation: string, options: { readonly reset?: boolean }): boolean {
  checkOptions(operation, options, ['reset']);
  const { reset = false } = options;
  checkValue(operation, 'reset', reset, BOOLEAN);
  return reset;
}
