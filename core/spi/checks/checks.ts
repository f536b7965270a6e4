/**
 * Checks of values and of options: the one place that compares them with their kinds, and the one
 * wording. The caller decides on the error: a `Refuse` makes it.
 */
import { expectedOf, integerText, isInteger, type Kind, OBJECT, withNearest } from './kinds.js';
import { show } from './show.js';

/** Makes the error of a check that has failed. */
export type Refuse = (name: string, value: unknown, expected: string) => Error;

/** Kinds of options by name. All options of `T` must be there. */
export type Kinds<T> = { readonly [K in keyof T]-?: Kind };

/** The message of a check that has failed: the value, and the limit. */
export function mustBe(name: string, value: unknown, expected: string): string {
  return `${name} is ${show(value)}; it must be ${expected}`;
}

/** For codecs and simulated parts, whose misuse is a bug in the program. */
export function outOfRange(name: string, value: unknown, expected: string): RangeError {
  return new RangeError(mustBe(name, value, expected));
}

export function checkValue<T>(
  name: string,
  value: unknown,
  kind: Kind<T>,
  refuse: Refuse,
): asserts value is T {
  if (!kind.accepts(value)) throw refuse(name, value, expectedOf(kind, value));
  if (kind.fields === undefined || value === undefined) return;
  checkOptions(value as Readonly<Record<string, unknown>>, kind.fields, within(name, refuse));
}

/** As `checkValue` of an `integer`, without creating one: for limits known only at run time. */
export function checkInteger(
  name: string,
  value: unknown,
  min: number,
  max: number,
  refuse: Refuse,
): asserts value is number {
  if (!isInteger(value, min, max)) throw refuse(name, value, integerText(min, max));
}

/** An object without unknown keys. */
export function checkNames(options: unknown, known: readonly string[], refuse: Refuse): void {
  checkValue('options', options, OBJECT, refuse);
  for (const name of Object.keys(options)) {
    if (!known.includes(name)) throw refuse('an option', name, namesText(name, known));
  }
}

function namesText(name: string, known: readonly string[]): string {
  if (known.length === 0) return 'left out: there are none';
  return withNearest(`one of ${known.join(', ')}`, name, known);
}

/** For options within an option: errors name both, as "parameters: maxSge". */
export function within(outer: string, refuse: Refuse): Refuse {
  return (name, value, expected) => refuse(`${outer}: ${name}`, value, expected);
}

/** The values in a table, in its order; an object may have others besides. */
export function checkValues<T extends object>(
  options: T,
  kinds: Partial<Kinds<T>>,
  refuse: Refuse,
): void {
  for (const name in kinds) checkValue(name, options[name], kinds[name] as Kind, refuse);
}

/** Options: an object with no other keys than those of the table, and values of its kinds. */
export function checkOptions<T extends object>(options: T, kinds: Kinds<T>, refuse: Refuse): void {
  checkNames(options, Object.keys(kinds), refuse);
  checkValues(options, kinds, refuse);
}
