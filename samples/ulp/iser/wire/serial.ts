/** Serial numbers of 32 bits, which come round (RFC 1982; RFC 7143, 4.2.2.1). */

/** `number + by`; `by` may be negative. */
export function serialAdd(number: number, by: number): number {
  return (number + by) >>> 0;
}

/** How far `number` is ahead of `reference`, -2^31 to 2^31 - 1. */
export function serialDistance(number: number, reference: number): number {
  return (number - reference) | 0;
}

/** Whether `number` comes before `reference`. */
export function serialBefore(number: number, reference: number): boolean {
  return serialDistance(number, reference) < 0;
}
