/**
 * The memory of an endpoint: four regions with guard zones around each of them, in one buffer.
 *
 *     guard | source | guard | receive slots | guard | target slots | guard | landing slots | guard
 */
export const SLOTS = { RECEIVE: 16, TARGET: 12, LANDING: 12 } as const;
export const GUARD_BYTES = 512;

export interface Layout {
  /** Largest message in bytes; the size of target and landing slots. */
  readonly slotBytes: number;
  readonly source: number;
  readonly sourceBytes: number;
  readonly receive: number;
  readonly receiveBytes: number;
  readonly target: number;
  readonly targetBytes: number;
  readonly landing: number;
  readonly landingBytes: number;
  readonly totalBytes: number;
}

/** @param slotBytes a multiple of 8 */
export function layoutOf(slotBytes: number): Layout {
  const sourceBytes = slotBytes * 2;
  const receiveBytes = slotBytes * SLOTS.RECEIVE;
  const targetBytes = slotBytes * SLOTS.TARGET;
  const landingBytes = slotBytes * SLOTS.LANDING;
  const source = GUARD_BYTES;
  const receive = source + sourceBytes + GUARD_BYTES;
  const target = receive + receiveBytes + GUARD_BYTES;
  const landing = target + targetBytes + GUARD_BYTES;
  return {
    slotBytes,
    source,
    sourceBytes,
    receive,
    receiveBytes,
    target,
    targetBytes,
    landing,
    landingBytes,
    totalBytes: landing + landingBytes + GUARD_BYTES,
  };
}
