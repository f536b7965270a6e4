/**
 * Objects in one line, for `console.log`, `util.inspect`, `String()` and JSON. The line names the
 * object and its owner, and shows none of its parts: another object in it is a kind and a number.
 */
import { oneLine, show } from './show.js';

/**
 * Fields that an object shows. undefined and false are left out; true is shown as the name alone.
 */
export type Facts = Readonly<Record<string, unknown>>;

/** Text without quotes: a symbolic value, or a number that people know in hexadecimal. */
export class Symbolic {
  constructor(readonly text: string) {}
}

/** A key or number of the wire, in hexadecimal. */
export function hex(value: number | bigint): Symbolic {
  return new Symbolic(`0x${value.toString(16)}`);
}

const KIND = Symbol('kind');
/** The method that Node's `util.inspect` asks for the text of an object. */
const INSPECT = Symbol.for('nodejs.util.inspect.custom');
/** Longest text of one field; the rest is left out. */
const MOST_TEXT = 200;
/** Elements of a list that are shown. */
const MOST_ITEMS = 8;

/**
 * Makes the objects of a class show themselves in one line.
 * @param kind of the object, or a function that returns it
 * @param facts in the order of the line; none but `id` is shown where another object names this one
 */
export function showAs<T extends object>(
  type: { readonly prototype: T },
  kind: string | ((object: T) => string),
  facts: (object: T) => Facts,
): void {
  const kindOf = typeof kind === 'string' ? (): string => kind : kind;
  const line = function (this: T): string {
    return lineOf(kindOf(this), shownFacts(facts, this));
  };
  const json = function (this: T): Facts {
    const entries = shownFacts(facts, this).map(([name, value]) => [name, jsonOf(value)]);
    return { kind: kindOf(this), ...(Object.fromEntries(entries) as Facts) };
  };
  const own = { [KIND]: kindOf, [INSPECT]: line, toString: line, toJSON: json };
  for (const key of Reflect.ownKeys(own)) {
    const value = own[key as keyof typeof own];
    Object.defineProperty(type.prototype, key, { value, configurable: true, writable: true });
  }
}

/** A prototype, and an object whose constructor has failed, have nothing to show. */
function shownFacts<T>(facts: (object: T) => Facts, object: T): [string, unknown][] {
  try {
    return Object.entries(facts(object)).filter(
      ([, value]) => value !== undefined && value !== false,
    );
  } catch {
    return [];
  }
}

function lineOf(kind: string, facts: readonly [string, unknown][]): string {
  const texts = facts.map(([name, value]) => (value === true ? name : `${name}: ${textOf(value)}`));
  return texts.length === 0 ? `${kind} {}` : `${kind} { ${texts.join(', ')} }`;
}

function textOf(value: unknown): string {
  const text = symbolOf(value);
  if (text !== undefined) return text;
  try {
    const all = oneLine(partsOf(value).replace(/\s*\n\s*/g, ' '));
    return all.length > MOST_TEXT + 2 ? `${all.slice(0, MOST_TEXT)}…` : all;
  } catch {
    return show(value);
  }
}

/** As `util.inspect` writes it: lists and plain objects down to the parts of their parts. */
function partsOf(value: unknown, depth = 0): string {
  if (typeof value === 'string') return quoted(value);
  if (typeof value !== 'object' || value === null) return show(value);
  if (value instanceof Error) return quoted(String(value));
  if (INSPECT in value) return String((value[INSPECT] as () => unknown)());
  const isList = Array.isArray(value);
  if (!isList && Object.getPrototypeOf(value) !== Object.prototype) return show(value);
  if (depth > 1) return isList ? '[Array]' : '[Object]';
  const partOf = (part: unknown): string => symbolOf(part) ?? partsOf(part, depth + 1);
  if (!isList) {
    const parts = Object.entries(value).map(([name, part]) => `${name}: ${partOf(part)}`);
    return `{ ${parts.join(', ')} }`;
  }
  const parts = value.slice(0, MOST_ITEMS).map(partOf);
  if (value.length > MOST_ITEMS) parts.push(`... ${value.length - MOST_ITEMS} more items`);
  return `[ ${parts.join(', ')} ]`;
}

function quoted(text: string): string {
  const more = text.length - MOST_TEXT;
  const shown = JSON.stringify(text.slice(0, MOST_TEXT)).slice(1, -1).replaceAll('\\"', '"');
  return more > 0 ? `'${shown}'... ${more} more characters` : `'${shown}'`;
}

function jsonOf(value: unknown): unknown {
  if (typeof value === 'bigint' || value instanceof Error) return String(value);
  return symbolOf(value) ?? value;
}

/** The short text of a value that is not shown in full. */
function symbolOf(value: unknown): string | undefined {
  if (typeof value !== 'object' || value === null) return undefined;
  if (value instanceof Symbolic) return value.text;
  if (value instanceof Uint8Array) return `${value.length} bytes`;
  if (!(KIND in value)) return undefined;
  const kind = (value[KIND] as (object: object) => string)(value);
  return 'id' in value ? `${kind} ${String(value.id)}` : kind;
}
