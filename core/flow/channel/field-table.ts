/**
 * The channel's wire format, as tables: the place and the range of each field. All fields are
 * unsigned and big-endian. Bytes that no table names are reserved: sent as zero and ignored on
 * arrival, so that a later version may use them.
 */
import { checkInteger, outOfRange } from '../../spi/checks/index.js';
import { breach } from './protocol-error.js';

export interface Field {
  /** Bytes from the start. */
  readonly at: number;
  readonly bytes: 1 | 2 | 4;
  readonly min: number;
  readonly max: number;
}

/** A field of a layout. */
interface Named<K extends string> extends Field {
  readonly key: K;
  /** In errors: `frame.kind`. */
  readonly label: string;
}

export interface Layout<K extends string> {
  /** In messages: `frame`. */
  readonly name: string;
  readonly lengthBytes: number;
  readonly fields: readonly Named<K>[];
}

export type Values<K extends string> = { readonly [N in K]: number };

/** A field with the values that its width allows, unless they are fewer. */
export function uint(at: number, bytes: 1 | 2 | 4, min = 0, max = 256 ** bytes - 1): Field {
  return { at, bytes, min, max };
}

export function layout<K extends string>(
  name: string,
  lengthBytes: number,
  fields: Readonly<Record<K, Field>>,
): Layout<K> {
  const named = (Object.keys(fields) as K[]).map((key) => {
    return { ...fields[key], key, label: `${name}.${key}` };
  });
  return { name, lengthBytes, fields: named };
}

/**
 * Writes the first `lengthBytes` of `data`.
 * @throws RangeError naming field, value and limit; `data` is untouched then
 */
export function emit<K extends string>(
  { lengthBytes, fields }: Layout<K>,
  values: Values<K>,
  data: Uint8Array,
): void {
  for (const { key, label, min, max } of fields) {
    checkInteger(label, values[key], min, max, outOfRange);
  }
  data.fill(0, 0, lengthBytes);
  for (const field of fields) write(data, field, values[field.key]);
}

/** @throws ChannelProtocolError naming field, value and limit */
export function parse<K extends string>(
  { name, lengthBytes, fields }: Layout<K>,
  data: Uint8Array,
): Values<K> {
  if (data.length < lengthBytes) {
    throw breach(`the length of a ${name}`, data.length, `at least ${lengthBytes}`);
  }
  const values = {} as Record<K, number>;
  for (const field of fields) {
    const value = read(data, field);
    checkInteger(field.label, value, field.min, field.max, breach);
    values[field.key] = value;
  }
  return values;
}

// By bytes: a DataView for each frame would be most of what a frame costs the heap.
function read(data: Uint8Array, { at, bytes }: Field): number {
  let value = 0;
  for (let i = 0; i < bytes; i++) value = value * 256 + (data[at + i] as number);
  return value;
}

function write(data: Uint8Array, { at, bytes }: Field, value: number): void {
  for (let i = 0; i < bytes; i++) data[at + i] = value >>> (8 * (bytes - 1 - i));
}
