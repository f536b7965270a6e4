/**
 * Reasons to keep the process alive, with `ref()` and `unref()` as in node:net. A number, so that
 * it costs nothing in objects of which there are thousands.
 */
import type { ProcessHold } from './clock.js';

/** Bits: it has a reason to keep the process alive; it must not. */
export const HOLD = { ENGAGED: 1, UNREF: 2 } as const;

/**
 * Sets or clears a bit of a hold, and updates the process if that makes a difference.
 * @param hold bits of HOLD; 0 at first
 * @returns the new bits
 */
export function changeHold(
  processHold: ProcessHold,
  hold: number,
  bit: number,
  on: boolean,
): number {
  const next = on ? hold | bit : hold & ~bit;
  const held = hold === HOLD.ENGAGED;
  const holds = next === HOLD.ENGAGED;
  if (holds && !held) processHold.retain();
  if (held && !holds) processHold.release();
  return next;
}

/** True if it keeps the process alive when it has a reason to. */
export function hasRef(hold: number): boolean {
  return (hold & HOLD.UNREF) === 0;
}
