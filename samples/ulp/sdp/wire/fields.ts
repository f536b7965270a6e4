/**
 * Layouts as tables: position and width of each field. All fields are unsigned and big-endian.
 * Bytes that a table does not name are reserved: sent as zero, ignored on receipt.
 */

export interface Field {
  /** Offset from the start of the message. */
  readonly at: number;
  readonly bytes: 1 | 2 | 4;
}

type Layout<K extends string> = Readonly<Record<K, Field>>;
export type Values<K extends string> = Record<K, number>;

/** @param bytes the width */
export function uint(at: number, bytes: 1 | 2 | 4): Field {
  return { at, bytes };
}

export function readField(data: Uint8Array, { at, bytes }: Field): number {
  let value = 0;
  for (let i = 0; i < bytes; i++) value = value * 256 + (data[at + i] as number);
  return value;
}

/** @throws RangeError if the value is no unsigned integer of that width */
export function writeField(data: Uint8Array, { at, bytes }: Field, value: number): void {
  if (!Number.isInteger(value) || value < 0 || value >= 256 ** bytes) {
    throw new RangeError(`the field at ${at} is ${value}: it must be 0 to ${256 ** bytes - 1}`);
  }
  for (let i = 0; i < bytes; i++) data[at + i] = value >>> (8 * (bytes - 1 - i));
}

export function readLayout<K extends string>(data: Uint8Array, layout: Layout<K>): Values<K> {
  const values = {} as Values<K>;
  for (const key of Object.keys(layout) as K[]) values[key] = readField(data, layout[key]);
  return values;
}

/** @throws RangeError as `writeField` */
export function writeLayout<K extends string>(
  data: Uint8Array,
  layout: Layout<K>,
  values: Values<K>,
): void {
  for (const key of Object.keys(layout) as K[]) writeField(data, layout[key], values[key]);
}

/** 64 bits. */
export function readU64(data: Uint8Array, at: number): bigint {
  const high = BigInt(readField(data, uint(at, 4)));
  return (high << 32n) | BigInt(readField(data, uint(at + 4, 4)));
}

/** @throws RangeError if the value is no unsigned integer of 64 bits */
export function writeU64(data: Uint8Array, at: number, value: bigint): void {
  if (value < 0n || value >> 64n !== 0n) {
    throw new RangeError(`the field at ${at} is ${value}: it must be 0 to 2^64 - 1`);
  }
  writeField(data, uint(at, 4), Number(value >> 32n));
  writeField(data, uint(at + 4, 4), Number(value & 0xffffffffn));
}
