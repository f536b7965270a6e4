/**
 * Message formats as tables. A format is an object with a key for each field of the message, whose
 * value says where the field is. `parse`, `emit` and the message's type follow from the table.
 * Bits count from the most significant one, as in the specification: byte 43 bit 5 is 0x04.
 *
 * Bits that the table does not name are reserved: zero when emitted, ignored when parsed.
 */
import {
  BYTES,
  checkInteger,
  checkValue,
  isU64,
  kindOf,
  outOfRange,
} from '../../../core/spi/checks/index.js';

/** Unsigned integer of 1 to 32 bits. If it has several parts, the most significant comes first. */
export interface UintField {
  readonly kind: 'uint';
  readonly parts: readonly BitRange[];
  /** The largest value; by default the largest that fits the width. */
  readonly max: number;
}

export interface BitRange {
  readonly byte: number;
  readonly bit: number;
  readonly width: number;
}

/** Unsigned 64-bit integer, as a bigint. */
export interface Uint64Field {
  readonly kind: 'uint64';
  readonly byte: number;
}

/** Bytes. `padded`: shorter is allowed and zeros follow, as for private data. */
export interface BytesField {
  readonly kind: 'bytes';
  readonly byte: number;
  readonly length: number;
  readonly padded: boolean;
}

export type FieldValue = number | bigint | Uint8Array;

type Field = UintField | Uint64Field | BytesField;
type ValueOf<F> = F extends UintField ? number : F extends Uint64Field ? bigint : Uint8Array;

/** Position of each field of a message. The comment on a row describes the field. */
export type Layout = Readonly<Record<string, Field>>;

/** A message with the fields of a table. */
export type MessageIn<L extends Layout> = { readonly [K in keyof L]: ValueOf<L[K]> };

export type MessageOf<C> = C extends WireCodec<infer L> ? MessageIn<L> : never;

export interface WireCodec<L extends Layout, M = MessageIn<L>> {
  readonly name: string;
  readonly lengthBytes: number;
  readonly layout: L;
  /** Undefined when the length is wrong or a field is out of range. Byte fields are copies. */
  parse(data: Uint8Array): M | undefined;
  /**
   * Writes all bytes of `data` and returns it.
   * @param data of `lengthBytes`; a new array when left out
   * @throws RangeError naming field, value and limit; `data` is untouched then
   */
  emit(message: M, data?: Uint8Array): Uint8Array;
}

/** `width` bits (1 to 32) from bit `bit` of byte `byte`. */
export function uint(byte: number, bit: number, width: number, max = 2 ** width - 1): UintField {
  return { kind: 'uint', parts: [{ byte, bit, width }], max };
}

/** Whole bytes (1 each) at several places, most significant first. */
export function scattered(...bytes: readonly number[]): UintField {
  const parts = bytes.map((byte) => ({ byte, bit: 0, width: 8 }));
  return { kind: 'uint', parts, max: 2 ** (8 * bytes.length) - 1 };
}

export function uint64(byte: number): Uint64Field {
  return { kind: 'uint64', byte };
}

/** Bytes of a fixed length: GIDs. */
export function bytes(byte: number, length: number): BytesField {
  return { kind: 'bytes', byte, length, padded: false };
}

/** Bytes up to a length: private data, additional information. */
export function padded(byte: number, length: number): BytesField {
  return { kind: 'bytes', byte, length, padded: true };
}

export function wireCodec<L extends Layout>(
  name: string,
  lengthBytes: number,
  layout: L,
): WireCodec<L> {
  const rows = Object.entries<Field>(layout);
  return {
    name,
    lengthBytes,
    layout,
    parse(data) {
      if (data.length !== lengthBytes) return undefined;
      const message: Record<string, FieldValue> = {};
      for (const [key, field] of rows) {
        const value = read(data, field);
        if (field.kind === 'uint' && (value as number) > field.max) return undefined;
        message[key] = value;
      }
      // The loop above has set a value of the right type for each row.
      return message as MessageIn<L>;
    },
    emit(message, data = new Uint8Array(lengthBytes)) {
      if (data.length !== lengthBytes) {
        throw new RangeError(`${name}: buffer has ${data.length} bytes, must be ${lengthBytes}`);
      }
      const values = message as Readonly<Record<string, FieldValue>>;
      for (const [key, field] of rows) check(`${name}.${key}`, field, values[key]);
      data.fill(0);
      for (const [key, field] of rows) write(data, field, values[key] as FieldValue);
      return data;
    },
  };
}

function read(data: Uint8Array, field: Field): FieldValue {
  switch (field.kind) {
    case 'uint':
      return field.parts.reduce((sum, part) => sum * 2 ** part.width + readBits(data, part), 0);
    case 'uint64':
      return viewOf(data).getBigUint64(field.byte);
    case 'bytes':
      return data.slice(field.byte, field.byte + field.length);
  }
}

/** Writes a field into a buffer of zeros. */
function write(data: Uint8Array, field: Field, value: FieldValue): void {
  switch (field.kind) {
    case 'uint': {
      let rest = value as number;
      for (const part of [...field.parts].reverse()) {
        writeBits(data, part, rest % 2 ** part.width);
        rest = Math.floor(rest / 2 ** part.width);
      }
      return;
    }
    case 'uint64':
      viewOf(data).setBigUint64(field.byte, value as bigint);
      return;
    case 'bytes':
      data.set(value as Uint8Array, field.byte);
  }
}

// A field of up to 32 bits touches up to 5 bytes: 40 bits, exact in a double.

function readBits(data: Uint8Array, { byte, bit, width }: BitRange): number {
  const span = Math.ceil((bit + width) / 8);
  let bits = 0;
  for (let at = byte; at < byte + span; at += 1) bits = bits * 256 + (data[at] ?? 0);
  return Math.floor(bits / 2 ** (8 * span - bit - width)) % 2 ** width;
}

function writeBits(data: Uint8Array, { byte, bit, width }: BitRange, value: number): void {
  const span = Math.ceil((bit + width) / 8);
  let bits = value * 2 ** (8 * span - bit - width);
  for (let at = byte + span - 1; at >= byte; at -= 1) {
    data[at] = (data[at] ?? 0) | (bits % 256);
    bits = Math.floor(bits / 256);
  }
}

function viewOf(data: Uint8Array): DataView {
  return new DataView(data.buffer, data.byteOffset, data.byteLength);
}

const U64 = kindOf<bigint>('a bigint from 0 to 2^64 - 1', isU64);

function check(name: string, field: Field, value: FieldValue | undefined): void {
  switch (field.kind) {
    case 'uint':
      checkInteger(name, value, 0, field.max, outOfRange);
      return;
    case 'uint64':
      checkValue(name, value, U64, outOfRange);
      return;
    case 'bytes': {
      checkValue(name, value, BYTES, outOfRange);
      const { length } = value;
      if (field.padded ? length <= field.length : length === field.length) return;
      const limit = field.padded ? `at most ${field.length}` : `exactly ${field.length}`;
      throw outOfRange(`${name}.length`, length, limit);
    }
  }
}
