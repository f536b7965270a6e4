/** 24-bit serial arithmetic for PSN, MSN and SSN: everything is modulo 2^24 (IBTA 9.7.2). */

export const PSN_MASK = 0xffffff;

/** `psn + count` modulo 2^24; `count` may be negative. */
export function psnAdd(psn: number, count: number): number {
  return (psn + count) & PSN_MASK;
}

export function psnNext(psn: number): number {
  return (psn + 1) & PSN_MASK;
}

/** Signed distance from `b` to `a`, -2^23 to 2^23-1: positive when `a` comes after `b`. */
export function psnDiff(a: number, b: number): number {
  return ((a - b) << 8) >> 8;
}

/** True if `psn` is one of the `count` numbers that start at `first`. */
export function psnInRange(psn: number, first: number, count: number): boolean {
  return ((psn - first) & PSN_MASK) < count;
}
