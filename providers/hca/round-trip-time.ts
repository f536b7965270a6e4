/**
 * The time until a packet is answered, estimated as TCP does (RFC 6298); and the shortest one seen,
 * which is that of a path without queues. Repeated packets are not timed (Karn's algorithm).
 */
/**
 * Before the first sample. Too short costs a few packets that are sent again, at doubling intervals
 * (no retries); too long, a flow whose first packet is lost among many waits while the others go.
 */
const INITIAL_TIMEOUT_US = 5000;

export class RoundTripTime {
  /** Infinity before the first sample. */
  shortestUs = Infinity;
  smoothedUs = 0;
  private deviationUs = 0;

  reset(): void {
    this.shortestUs = Infinity;
    this.smoothedUs = 0;
  }

  add(sampleUs: number): void {
    if (this.shortestUs === Infinity) {
      this.smoothedUs = sampleUs;
      this.deviationUs = sampleUs / 2;
    } else {
      const error = sampleUs - this.smoothedUs;
      this.deviationUs += (Math.abs(error) - this.deviationUs) / 4;
      this.smoothedUs += error / 8;
    }
    if (sampleUs < this.shortestUs) this.shortestUs = sampleUs;
  }

  /** What queues add to the shortest time, as a ratio; Infinity when nothing is known. */
  get inflation(): number {
    return this.shortestUs === Infinity ? Infinity : this.smoothedUs / this.shortestUs;
  }

  /** Longer than an answer takes, by all that is known of it. */
  get timeoutUs(): number {
    if (this.shortestUs === Infinity) return INITIAL_TIMEOUT_US;
    return this.smoothedUs + 4 * this.deviationUs;
  }
}
