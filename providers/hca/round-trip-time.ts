/**
 * The time until a packet is answered, estimated as TCP does (RFC 6298); and the shortest one seen,
 * which is that of a path without queues. Repeated packets are not timed (Karn's algorithm).
 */
import type { RcMemory } from './rc-memory.js';

/**
 * Before the first sample. Too short costs a few packets that are sent again, at doubling intervals
 * (no retries); too long, a flow whose first packet is lost among many waits while the others go.
 */
const INITIAL_TIMEOUT_US = 5000;

export class RoundTripTime {
  constructor(private readonly times: RcMemory) {}

  /** Infinity before the first sample. */
  get shortestUs(): number {
    return this.times.shortestUs;
  }

  get smoothedUs(): number {
    return this.times.smoothedUs;
  }

  reset(): void {
    this.times.shortestUs = Infinity;
    this.times.smoothedUs = 0;
  }

  add(sampleUs: number): void {
    const { times } = this;
    if (times.shortestUs === Infinity) {
      times.smoothedUs = sampleUs;
      times.deviationUs = sampleUs / 2;
    } else {
      const error = sampleUs - times.smoothedUs;
      times.deviationUs += (Math.abs(error) - times.deviationUs) / 4;
      times.smoothedUs += error / 8;
    }
    if (sampleUs < times.shortestUs) times.shortestUs = sampleUs;
  }

  /** What queues add to the shortest time, as a ratio; Infinity when nothing is known. */
  get inflation(): number {
    return this.shortestUs === Infinity ? Infinity : this.smoothedUs / this.shortestUs;
  }

  /** Longer than an answer takes, by all that is known of it. */
  get timeoutUs(): number {
    if (this.shortestUs === Infinity) return INITIAL_TIMEOUT_US;
    return this.smoothedUs + 4 * this.times.deviationUs;
  }
}
