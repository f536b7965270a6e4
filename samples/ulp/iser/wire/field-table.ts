/**
 * Formats as tables. A format is an object that maps the names of fields to their positions; the
 * type of a view and its accessors follow from it. A view reads and writes the underlying bytes
 * without a copy. So read a value before its buffer is reused. All numbers are big-endian.
 */

/** One field: its type is what reading gives and writing takes. */
export interface Field<V> {
  read(bytes: Uint8Array, at: number): V;
  /** @throws RangeError for a value that the field cannot hold */
  write(bytes: Uint8Array, at: number, value: V, name: string): void;
  /** Offset of the byte behind it. */
  readonly end: number;
}

// eslint-disable-next-line @typescript-eslint/no-explicit-any -- fields of any value
type Table = Readonly<Record<string, Field<any>>>;
type ValueOf<F> = F extends Field<infer V> ? V : never;
export type Values<T extends Table> = { -readonly [K in keyof T]: ValueOf<T[K]> };

/** Fields over the bytes of one PDU, header or parameter list. */
export type View<T extends Table> = Values<T> & {
  readonly bytes: Uint8Array;
  /** Offset of the format's first byte in `bytes`. */
  readonly at: number;
};

export interface Format<T extends Table> {
  readonly name: string;
  readonly lengthBytes: number;
  /** @throws RangeError when the bytes end before the format does */
  view(bytes: Uint8Array, at?: number): View<T>;
  /**
   * Writes the format: zeros, its constants, then these values.
   * @throws RangeError for a value that its field cannot hold, or bytes that are too short
   */
  emit(values: Partial<Values<T>>, into: Uint8Array, at?: number): View<T>;
  /** The same, into bytes of its own. */
  make(values: Partial<Values<T>>): View<T>;
  /** All fields, as a plain object that stays as it is. */
  record(view: View<T>): Values<T>;
}

/** The view that a format gives. */
export type ViewOf<F> = F extends Format<infer T> ? View<T> : never;

/** @param constants what `emit` writes before the values */
export function format<T extends Table>(
  name: string,
  lengthBytes: number,
  table: T,
  constants: Partial<Values<T>> = {},
): Format<T> {
  class FieldsView {
    // Declared alone: a view is made for every PDU, and a field that is defined costs twice.
    declare readonly bytes: Uint8Array;
    declare readonly at: number;

    constructor(bytes: Uint8Array, at: number) {
      this.bytes = bytes;
      this.at = at;
    }
  }
  for (const [key, field] of Object.entries(table)) {
    const shownName = `${name}.${key}`;
    if (field.end > lengthBytes) throw new RangeError(`${shownName} ends at ${field.end}`);
    Object.defineProperty(FieldsView.prototype, key, {
      get(this: FieldsView) {
        return field.read(this.bytes, this.at) as unknown;
      },
      set(this: FieldsView, value: unknown) {
        field.write(this.bytes, this.at, value, shownName);
      },
    });
  }
  const view = (bytes: Uint8Array, at = 0): View<T> => {
    if (at + lengthBytes > bytes.length) {
      throw new RangeError(`${name} has ${bytes.length - at} bytes, must have ${lengthBytes}`);
    }
    return new FieldsView(bytes, at) as unknown as View<T>;
  };
  const write = (values: Partial<Values<T>>, into: Uint8Array, at: number): void => {
    for (const key in values) {
      table[key]!.write(into, at, values[key], key);
    }
  };
  // Zeros and constants are copied at once: formats are written for every command.
  const blank = new Uint8Array(lengthBytes);
  write(constants, blank, 0);
  const emit = (values: Partial<Values<T>>, into: Uint8Array, at = 0): View<T> => {
    const written = view(into, at);
    into.set(blank, at);
    try {
      write(values, into, at);
    } catch (error) {
      if (!(error instanceof RangeError)) throw error;
      throw new RangeError(`${name}.${error.message}`, { cause: error });
    }
    return written;
  };
  return {
    name,
    lengthBytes,
    view,
    emit,
    make: (values) => emit(values, new Uint8Array(lengthBytes)),
    record: (from) => {
      const fields: Readonly<Record<string, unknown>> = from;
      const entries = Object.keys(table).map((key): [string, unknown] => {
        const value = fields[key];
        return [key, value instanceof Uint8Array ? Uint8Array.from(value) : value];
      });
      return Object.fromEntries(entries) as Values<T>;
    },
  };
}

/** An unsigned integer of 1 to 4 bytes. */
export function uint(offset: number, lengthBytes: 1 | 2 | 3 | 4): Field<number> {
  const highest = 2 ** (8 * lengthBytes) - 1;
  const end = offset + lengthBytes;
  const { read, write } = BIG_ENDIAN[lengthBytes];
  return {
    end,
    read: (bytes, at) => read(bytes, at + offset),
    write: (bytes, at, value, name) => {
      check(value, highest, name);
      write(bytes, at + offset, value);
    },
  };
}

/** Byte by byte, without a loop: there are a dozen of them in every command. */
const BIG_ENDIAN = {
  1: {
    read: (from: Uint8Array, at: number): number => from[at]!,
    write: (into: Uint8Array, at: number, value: number): void => {
      into[at] = value;
    },
  },
  2: {
    read: (from: Uint8Array, at: number): number => (from[at]! << 8) | from[at + 1]!,
    write: (into: Uint8Array, at: number, value: number): void => {
      into[at] = value >>> 8;
      into[at + 1] = value;
    },
  },
  3: {
    read: (from: Uint8Array, at: number): number =>
      (from[at]! << 16) | (from[at + 1]! << 8) | from[at + 2]!,
    write: (into: Uint8Array, at: number, value: number): void => {
      into[at] = value >>> 16;
      into[at + 1] = value >>> 8;
      into[at + 2] = value;
    },
  },
  4: {
    read: (from: Uint8Array, at: number): number =>
      ((from[at]! << 24) | (from[at + 1]! << 16) | (from[at + 2]! << 8) | from[at + 3]!) >>> 0,
    write: (into: Uint8Array, at: number, value: number): void => {
      into[at] = value >>> 24;
      into[at + 1] = value >>> 16;
      into[at + 2] = value >>> 8;
      into[at + 3] = value;
    },
  },
} as const;

/** An unsigned integer of 8 bytes. */
export function uint64(offset: number): Field<bigint> {
  const high = uint(offset, 4);
  const low = uint(offset + 4, 4);
  return {
    end: offset + 8,
    read: (bytes, at) => (BigInt(high.read(bytes, at)) << 32n) | BigInt(low.read(bytes, at)),
    write: (bytes, at, value, name) => {
      if (value < 0n || value > 0xffff_ffff_ffff_ffffn) {
        throw new RangeError(`${name} is ${value}, must be 0 to 2^64 - 1`);
      }
      high.write(bytes, at, Number(value >> 32n), name);
      low.write(bytes, at, Number(value & 0xffff_ffffn), name);
    },
  };
}

/** The bits of one byte under this mask of neighbours, as a number. */
export function bits(offset: number, mask: number): Field<number> {
  const shift = 31 - Math.clz32(mask & -mask);
  const highest = mask >>> shift;
  return {
    end: offset + 1,
    read: (bytes, at) => (bytes[at + offset]! & mask) >>> shift,
    write: (bytes, at, value, name) => {
      check(value, highest, name);
      bytes[at + offset] = (bytes[at + offset]! & ~mask) | (value << shift);
    },
  };
}

/** One bit. */
export function flag(offset: number, mask: number): Field<boolean> {
  return {
    end: offset + 1,
    read: (bytes, at) => (bytes[at + offset]! & mask) !== 0,
    write: (bytes, at, value) => {
      const others = bytes[at + offset]! & ~mask;
      bytes[at + offset] = value ? others | mask : others;
    },
  };
}

/** Bytes as they are; reading gives a part of the buffer, writing less than all leaves zeros. */
export function octets(offset: number, lengthBytes: number): Field<Uint8Array> {
  return {
    end: offset + lengthBytes,
    read: (bytes, at) => bytes.subarray(at + offset, at + offset + lengthBytes),
    write: (bytes, at, value, name) => {
      if (value.length > lengthBytes) {
        throw new RangeError(`${name} has ${value.length} bytes, must have at most ${lengthBytes}`);
      }
      bytes.fill(0, at + offset + value.length, at + offset + lengthBytes);
      bytes.set(value, at + offset);
    },
  };
}

/** ASCII of a fixed length, padded with blanks (SPC-4 4.4.1). */
export function ascii(offset: number, lengthBytes: number): Field<string> {
  return {
    end: offset + lengthBytes,
    read: (bytes, at) => {
      let text = '';
      for (let place = at + offset; place < at + offset + lengthBytes; place++) {
        const code = bytes[place]!;
        text += code < 0x20 || code > 0x7e ? ' ' : String.fromCharCode(code);
      }
      return text.trimEnd();
    },
    write: (bytes, at, value, name) => {
      if (value.length > lengthBytes || /[^\x20-\x7e]/.test(value)) {
        throw new RangeError(
          `${name} is ${JSON.stringify(value)}, must be at most ${lengthBytes} characters of ASCII`,
        );
      }
      for (let place = 0; place < lengthBytes; place++) {
        bytes[at + offset + place] = place < value.length ? value.charCodeAt(place) : 0x20;
      }
    },
  };
}

function check(value: number, highest: number, name: string): void {
  if (!Number.isInteger(value) || value < 0 || value > highest) {
    throw new RangeError(`${name} is ${value}, must be 0 to ${highest}`);
  }
}
