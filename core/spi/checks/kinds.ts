/** Kinds of values, as data: a test, and the words for it. */
import { nearest } from './nearest.js';
import { show } from './show.js';

export interface Kind<T = unknown> {
  /** Follows "it must be" in a message. */
  readonly expected: string;
  readonly accepts: (value: unknown) => value is T;
  /** The words that it accepts, if any: a misspelt word may mean one of them. */
  readonly words?: readonly string[];
  /** For an object: the kind of each of its fields; it has no others. */
  readonly fields?: Readonly<Record<string, Kind>>;
}

/** The text for a refused value: what it must be, and the word that it may have meant. */
export function expectedOf({ expected, words = [] }: Kind, value: unknown): string {
  return typeof value === 'string' ? withNearest(expected, value, words) : expected;
}

/** Adds the nearest known word, if one is near. */
export function withNearest(expected: string, word: string, known: readonly string[]): string {
  const meant = nearest(word, known);
  return meant === undefined ? expected : `${expected}: did you mean ${show(meant)}?`;
}

const MAX_U64 = 2n ** 64n - 1n;

/** An integer from `min` to `max` that a double holds exactly. */
export function isInteger(value: unknown, min: number, max: number): value is number {
  return Number.isSafeInteger(value) && (value as number) >= min && (value as number) <= max;
}

/** The range of `isInteger` in messages. */
export function integerText(min: number, max: number): string {
  return max === Infinity ? `an integer from ${min} on` : `an integer from ${min} to ${max}`;
}

export function isU64(value: unknown): value is bigint {
  return typeof value === 'bigint' && value >= 0n && value <= MAX_U64;
}

/** A number without bits outside `mask`; bit operators alone would not see those from 2^32 on. */
export function isBitSet(value: unknown, mask: number): value is number {
  return isInteger(value, 0, mask) && (value & ~mask) === 0;
}

export function kindOf<T>(expected: string, test: (value: unknown) => boolean): Kind<T> {
  return { expected, accepts: test as Kind<T>['accepts'] };
}

/** @param max Infinity for no limit */
export function integer(min: number, max: number): Kind<number> {
  return kindOf(integerText(min, max), (value) => isInteger(value, min, max));
}

/** Fractions, too; `Infinity` is in a range that ends with it. */
export function numberFrom(min: number, max: number): Kind<number> {
  const expected = max === Infinity ? `a number from ${min} on` : `a number from ${min} to ${max}`;
  return kindOf(expected, (value) => typeof value === 'number' && value >= min && value <= max);
}

export function oneOf<T>(values: readonly T[]): Kind<T> {
  const expected = `one of ${values.map(show).join(', ')}`;
  const words = values.filter((value) => typeof value === 'string');
  return { ...kindOf<T>(expected, (value) => values.includes(value as T)), words };
}

/** An object of a class. @param expected with its article: `an Upcall` */
export function instanceOf<T>(
  type: abstract new (...args: never[]) => T,
  expected: string,
): Kind<T> {
  return kindOf(expected, (value) => value instanceof type);
}

/** The kind of an option that may be left out. */
export function optional<T>(kind: Kind<T>): Kind<T | undefined> {
  const { expected, accepts } = kind;
  return { ...kind, ...kindOf(expected, (value) => value === undefined || accepts(value)) };
}

/** Accepts anything: another check follows. */
export const ANYTHING: Kind = kindOf('anything', () => true);
/** Fractions and `Infinity`, too. */
export const POSITIVE: Kind<number> = kindOf(
  'a number above 0',
  (value) => typeof value === 'number' && value > 0,
);
export const BOOLEAN: Kind<boolean> = kindOf('a boolean', (value) => typeof value === 'boolean');
export const BYTES: Kind<Uint8Array> = instanceOf(Uint8Array, 'a Uint8Array');
export const FUNCTION: Kind = kindOf('a function', (value) => typeof value === 'function');
export const LIST: Kind<readonly unknown[]> = kindOf('an array', Array.isArray);
export const OBJECT: Kind<object> = kindOf(
  'an object',
  (value) => typeof value === 'object' && value !== null && !Array.isArray(value),
);
/** Options within options: errors name both, as "parameters: maxSge". */
export function record(fields: Readonly<Record<string, Kind>>): Kind<object> {
  return { ...OBJECT, fields };
}

export const SIGNAL: Kind<AbortSignal> = instanceOf(AbortSignal, 'an AbortSignal');
export const TEXT: Kind<string> = kindOf(
  'a string that is not empty',
  (value) => typeof value === 'string' && value !== '',
);
