// What memory is filled with, and how it is compared without being carried over.

/** As `fill` of verbs-peer. */
export function fillPattern(bytes: Uint8Array, seed: number): void {
  for (let at = 0; at < bytes.length; at++) bytes[at] = (seed * 31 + at * 7 + (at >> 8)) & 0xff;
}

/** FNV-1a of 32 bits, as `digest` of verbs-peer. */
export function digestOf(bytes: Uint8Array): number {
  let hash = 2166136261;
  for (const byte of bytes) hash = Math.imul(hash ^ byte, 16777619) >>> 0;
  return hash;
}
