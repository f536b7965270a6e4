/** The real clock: monotonic microseconds since the process started. */
import { performance } from 'node:perf_hooks';
import type { Clock } from '../../core/spi/index.js';

export const monotonicClock: Clock = {
  now: () => performance.now() * 1000,
};
