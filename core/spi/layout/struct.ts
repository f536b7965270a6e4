/**
 * The layout of a slab's piece, as a table of named fields in order. Each field gets a place and an
 * accessor for the class of the piece. An accessor is a function with a constant offset on the
 * prototype. It costs as much as reading the typed array: the object keeps nothing, and nothing is
 * allocated.
 */
import type { Piece } from './slab.js';

/** The type of a field. */
interface Kind<V extends number | boolean> {
  readonly bytes: 4 | 8;
  accessor(at: number): { get(this: Piece): V; set(this: Piece, value: V): void };
}

export interface Field<V extends number | boolean = number> {
  readonly kind: Kind<V>;
  /** Its value in a new piece. */
  readonly first: V;
}

const WORD: Kind<number> = {
  bytes: 4,
  accessor: (at) => ({
    get(): number {
      return this.words[this.firstWord + at]!;
    },
    set(value): void {
      this.words[this.firstWord + at] = value;
    },
  }),
};

const FLAG: Kind<boolean> = {
  bytes: 4,
  accessor: (at) => ({
    get(): boolean {
      return this.words[this.firstWord + at] === 1;
    },
    set(value): void {
      this.words[this.firstWord + at] = value ? 1 : 0;
    },
  }),
};

const DOUBLE: Kind<number> = {
  bytes: 8,
  accessor: (at) => ({
    get(): number {
      return this.doubles[this.firstDouble + at]!;
    },
    set(value): void {
      this.doubles[this.firstDouble + at] = value;
    },
  }),
};

/** An unsigned number of 32 bits. */
export const u32: Field = { kind: WORD, first: 0 };
/** True or false, in a word of its own. */
export const flag: Field<boolean> = { kind: FLAG, first: false };
/** @param first its value in a new piece */
export const f64 = (first = 0): Field => ({ kind: DOUBLE, first });

type Fields = Readonly<Record<string, Field | Field<boolean>>>;
/** The accessors of fields. */
type Values<F extends Fields> = {
  -readonly [N in keyof F]: F[N] extends Field<infer V> ? V : never;
};

export interface Struct<F extends Fields> {
  readonly fields: F;
  /** Places, in words or in doubles, from the start of the piece. */
  readonly at: Readonly<Record<keyof F, number>>;
  /** Values in a new piece. */
  readonly first: Readonly<Values<F>>;
  /** Words from the start of the piece to its end. */
  readonly end: number;
}

/** @param begin start of the struct: words from the start of the piece */
export function struct<F extends Fields>(fields: F, begin = 0): Struct<F> {
  const at: Record<string, number> = {};
  const first: Record<string, number | boolean> = {};
  let end = begin;
  for (const [name, { kind, first: value }] of Object.entries(fields)) {
    at[name] = Math.ceil((end * 4) / kind.bytes);
    end = ((at[name] + 1) * kind.bytes) / 4;
    first[name] = value;
  }
  return { fields, at: at as Record<keyof F, number>, first: first as Values<F>, end };
}

type PieceClass<A extends unknown[], P> = new (...args: A) => P;

/** Adds the fields of a struct to the class of a piece: the same class, with their types. */
export function withFields<A extends unknown[], P extends Piece, F extends Fields>(
  Class: PieceClass<A, P>,
  { fields, at }: Struct<F>,
): PieceClass<A, P & Values<F>> {
  for (const name of Object.keys(fields)) {
    Object.defineProperty(Class.prototype as object, name, fields[name]!.kind.accessor(at[name]!));
  }
  return Class as PieceClass<A, P & Values<F>>;
}

/** A piece with rows, as many as its creator asked for. */
interface RowedPiece extends Piece {
  /** Index in `words` of the first one. */
  readonly firstRow: number;
}

/** By the number of the row: `psn(row)`, and `setPsn(row, value)`. */
type RowValues<F extends Fields> = {
  readonly [N in keyof F]: (row: number) => number;
} & {
  readonly [N in keyof F & string as `set${Capitalize<N>}`]: (row: number, value: number) => void;
};

/** Adds the columns of rows to the class of a piece; all columns are words. */
export function withRows<A extends unknown[], P extends RowedPiece, F extends Fields>(
  Class: PieceClass<A, P>,
  { fields, at, end: words }: Struct<F>,
): PieceClass<A, P & RowValues<F>> {
  for (const name of Object.keys(fields)) {
    const setter = `set${name.charAt(0).toUpperCase()}${name.slice(1)}`;
    Object.defineProperties(Class.prototype as object, {
      [name]: { value: rowReader(at[name]!, words) },
      [setter]: { value: rowWriter(at[name]!, words) },
    });
  }
  return Class as PieceClass<A, P & RowValues<F>>;
}

function rowReader(column: number, words: number): (this: RowedPiece, row: number) => number {
  return function (row) {
    return this.words[this.firstRow + row * words + column]!;
  };
}

function rowWriter(
  column: number,
  words: number,
): (this: RowedPiece, row: number, value: number) => void {
  return function (row, value) {
    this.words[this.firstRow + row * words + column] = value;
  };
}
