/** Clock, random numbers and processors of the machine. */
import { readFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { performance } from 'node:perf_hooks';
import type { Clock, Random } from '../../core/spi/index.js';
import { randomFillSync } from 'node:crypto';

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

/**
 * Processors of this process that no other thread of the machine runs on, or waits for, at this
 * moment: proc(5), the running ones in loadavg. All of them where the system does not say.
 */
export function countCores(): number {
  let running = 1;
  try {
    running = Number(/ (\d+)\/\d+ /.exec(readFileSync('/proc/loadavg', 'latin1'))?.[1] ?? 1);
  } catch {
    // Another system, or a container without it.
  }
  return availableParallelism() - (running - 1);
}

/** Monotonic microseconds since the process started. */
export const monotonicClock: Clock = {
  now: () => performance.now() * 1000,
};

const BUFFERED_WORDS = 256;

/**
 * Random numbers of the system's CSPRNG: rkeys, PSNs and communication ids come from here. A call
 * to the system serves 256 numbers. A word is wiped when it has been handed out.
 */
export class SystemRandom implements Random {
  private readonly words = new Uint32Array(BUFFERED_WORDS);
  private next = BUFFERED_WORDS;

  u32(): number {
    if (this.next === BUFFERED_WORDS) {
      randomFillSync(this.words);
      this.next = 0;
    }
    const value = this.words[this.next] ?? 0;
    this.words[this.next++] = 0;
    return value;
  }
}
