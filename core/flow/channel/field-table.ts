/**
 * What the channel puts on the wire, as tables: where each field is and what it may be. All fields
 * are unsigned and big-endian. What a table does not name is reserved: zero when it is sent,
 * ignored when it arrives, so that a later version may use it.
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

export interface Layout<K extends string> {
  /** In messages: `frame`. */
  readonly name: string;
  readonly lengthBytes: number;
  readonly fields: Readonly<Record<K, Field>>;
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
  return { name, lengthBytes, fields };
}

/**
 * Writes the first `lengthBytes` of `data`.
 * @throws RangeError naming field, value and limit; `data` is untouched then
 */
export function emit<K extends string>(
  { name, lengthBytes, fields }: Layout<K>,
  values: Values<K>,
  data: Uint8Array,
): void {
  for (const key in fields) {
    const { min, max } = fields[key];
    checkInteger(`${name}.${key}`, values[key], min, max, outOfRange);
  }
  data.fill(0, 0, lengthBytes);
  const view = viewOf(data);
  for (const key in fields) write(view, fields[key], values[key]);
}

/** @throws ChannelProtocolError naming field, value and limit */
export function parse<K extends string>(
  { name, lengthBytes, fields }: Layout<K>,
  data: Uint8Array,
): Values<K> {
  if (data.length < lengthBytes) {
    throw breach(`the length of a ${name}`, data.length, `at least ${lengthBytes}`);
  }
  const view = viewOf(data);
  const values = {} as Record<K, number>;
  for (const key in fields) {
    const field = fields[key];
    const value = read(view, field);
    checkInteger(`${name}.${key}`, value, field.min, field.max, breach);
    values[key] = value;
  }
  return values;
}

function viewOf(data: Uint8Array): DataView {
  return new DataView(data.buffer, data.byteOffset, data.byteLength);
}

function read(view: DataView, { at, bytes }: Field): number {
  if (bytes === 4) return view.getUint32(at);
  return bytes === 2 ? view.getUint16(at) : view.getUint8(at);
}

function write(view: DataView, { at, bytes }: Field, value: number): void {
  if (bytes === 4) view.setUint32(at, value);
  else if (bytes === 2) view.setUint16(at, value);
  else view.setUint8(at, value);
}
