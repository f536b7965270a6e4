/**
 * Remote keys of memory windows: the upper 24 bits are the window's, the lower 8 the consumer's.
 */
const KEY_MASK = 0xff;

/** The key to bind a window with next, so that its present one is void (`ibv_inc_rkey`). */
export function nextRkey(rkey: number): number {
  return ((rkey & ~KEY_MASK) | ((rkey + 1) & KEY_MASK)) >>> 0;
}
