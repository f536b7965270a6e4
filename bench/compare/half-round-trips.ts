/** Times of a ping-pong: half of each round trip, for a given time. */
import { performance } from 'node:perf_hooks';
import { type Histogram, build } from 'hdr-histogram-js';
import type { Count } from './end.js';

/** Round trips of the warm-up are not counted. */
const WARM_UP = 200;
/** As many as the programs in C keep; what comes later is not counted. */
const CAPACITY = 1 << 20;

export class HalfRoundTrips {
  /** Nanoseconds: no more is done between a message and its answer than to note them. */
  private readonly times = new Float64Array(CAPACITY);
  private noted = 0;
  private startMs = 0;
  private sinceMs = 0;
  private laps = 0;

  constructor(private readonly seconds: number) {}

  start(): void {
    this.startMs = performance.now();
    this.sinceMs = this.startMs;
  }

  /** A round trip is over; false when the time is up. */
  lap(): boolean {
    const nowMs = performance.now();
    this.laps += 1;
    if (this.laps > WARM_UP && this.noted < CAPACITY) {
      this.times[this.noted++] = (nowMs - this.sinceMs) * 5e5;
    }
    this.sinceMs = nowMs;
    return nowMs - this.startMs < this.seconds * 1000 || this.laps <= WARM_UP;
  }

  count(): Count {
    const histogram = this.histogram();
    return {
      messages: this.laps,
      counted: this.laps,
      seconds: (this.sinceMs - this.startMs) / 1000,
      p50: histogram.getValueAtPercentile(50) / 1000,
      p99: histogram.getValueAtPercentile(99) / 1000,
    };
  }

  private histogram(): Histogram {
    const histogram = build({
      lowestDiscernibleValue: 10,
      highestTrackableValue: 1e10,
      numberOfSignificantValueDigits: 3,
    });
    for (let i = 0; i < this.noted; i++) histogram.recordValue(this.times[i]!);
    return histogram;
  }
}
