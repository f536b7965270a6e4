/** The real clock: monotonic microseconds since the process started. */
import { performance } from 'node:perf_hooks';
import type { Clock } from '../../core/spi/index.js';

/** Readings to find out how far two clocks are apart: one may be interrupted. */
const READINGS = 8;

/** Difference between `process.hrtime` and `performance.now`, in microseconds. */
export function clockOffsetUs(): number {
  let least = Infinity;
  for (let i = 0; i < READINGS; i++) {
    const nowUs = monotonicClock.now();
    least = Math.min(least, Number(process.hrtime.bigint()) / 1000 - nowUs);
  }
  return least;
}

export const monotonicClock: Clock = {
  now: () => performance.now() * 1000,
};
