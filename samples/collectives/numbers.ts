/** Typed arrays, and the reductions of them (DAT's reduce operations). */

export type Numbers =
  | Int8Array
  | Uint8Array
  | Int16Array
  | Uint16Array
  | Int32Array
  | Uint32Array
  | Float32Array
  | Float64Array
  | BigInt64Array
  | BigUint64Array;

/** DAT_COLL_OP; the bitwise ones are for integers. */
export type Reduction = 'MAX' | 'MIN' | 'SUM' | 'PROD' | 'BAND' | 'BOR' | 'BXOR';

const NUMBER: Readonly<Record<Reduction, (a: number, b: number) => number>> = {
  MAX: Math.max,
  MIN: Math.min,
  SUM: (a, b) => a + b,
  PROD: (a, b) => a * b,
  BAND: (a, b) => a & b,
  BOR: (a, b) => a | b,
  BXOR: (a, b) => a ^ b,
};

const BIGINT: Readonly<Record<Reduction, (a: bigint, b: bigint) => bigint>> = {
  MAX: (a, b) => (a > b ? a : b),
  MIN: (a, b) => (a < b ? a : b),
  SUM: (a, b) => a + b,
  PROD: (a, b) => a * b,
  BAND: (a, b) => a & b,
  BOR: (a, b) => a | b,
  BXOR: (a, b) => a ^ b,
};

function isWide(data: Numbers): data is BigInt64Array | BigUint64Array {
  return data instanceof BigInt64Array || data instanceof BigUint64Array;
}

/** Combines `other` into `data`, element by element; sums and products wrap at the type's size. */
export function combine(reduction: Reduction, data: Numbers, other: Numbers): void {
  if (isWide(data) && isWide(other)) {
    const combined = BIGINT[reduction];
    for (let i = 0; i < data.length; i++) data[i] = combined(data[i] ?? 0n, other[i] ?? 0n);
  } else if (!isWide(data) && !isWide(other)) {
    const combined = NUMBER[reduction];
    for (let i = 0; i < data.length; i++) data[i] = combined(data[i] ?? 0, other[i] ?? 0);
  }
}

/** Copies all of `from` into `into`. */
export function copy(into: Numbers, from: Numbers): void {
  bytesOf(into).set(bytesOf(from));
}

/** The array's memory as bytes. */
export function bytesOf({ buffer, byteOffset, byteLength }: Numbers): Uint8Array {
  return new Uint8Array(buffer, byteOffset, byteLength);
}
