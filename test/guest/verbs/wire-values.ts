/** JSON with 64-bit numbers, and fields that are undefined: what ends tell each other. */

const BIGINT = /^(\d+)n$/;

export function toWire(value: unknown): string {
  return JSON.stringify(value, (_, field: unknown) => {
    if (typeof field === 'bigint') return `${field}n`;
    return field === undefined ? null : field;
  });
}

/** Nulls become undefined, "12n" a bigint. */
export function fromWire(value: unknown): unknown {
  if (value === null) return undefined;
  if (typeof value === 'string') {
    const digits = BIGINT.exec(value)?.[1];
    return digits === undefined ? value : BigInt(digits);
  }
  if (Array.isArray(value)) return value.map(fromWire);
  if (typeof value !== 'object') return value;
  return Object.fromEntries(Object.entries(value).map(([key, field]) => [key, fromWire(field)]));
}
