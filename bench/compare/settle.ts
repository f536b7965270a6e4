/** Warm-up by what is measured: until windows agree, however long that takes. */
import { performance } from 'node:perf_hooks';

const WINDOWS = 3;
const WITHIN = 1.1;

export interface Settling {
  readonly seconds: number;
  /** False: windows still differed when the time was up. */
  readonly settled: boolean;
}

/**
 * Measures windows until three in a row agree within 10 %.
 * @param limitSeconds most that it may take; a window that has begun comes to its end
 */
export async function settle(
  window: () => Promise<number>,
  limitSeconds: number,
): Promise<Settling> {
  const startMs = performance.now();
  const last: number[] = [];
  for (;;) {
    last.push(await window());
    if (last.length > WINDOWS) last.shift();
    const seconds = (performance.now() - startMs) / 1000;
    const settled = last.length === WINDOWS && Math.max(...last) <= Math.min(...last) * WITHIN;
    if (settled || seconds >= limitSeconds) return { seconds, settled };
  }
}
