/** Serial numbers of 32 bits, which wrap (RFC 1982; RFC 7143, 4.2.2.1). */

/** `number + by`; `by` may be negative. */
export function serialAdd(number: number, by: number): number {
  return (number + by) >>> 0;
}

/** Distance of `number` ahead of `reference`, -2^31 to 2^31 - 1. */
export function serialDistance(number: number, reference: number): number {
  return (number - reference) | 0;
}

/** True if `number` comes before `reference`. */
export function serialBefore(number: number, reference: number): boolean {
  return serialDistance(number, reference) < 0;
}
