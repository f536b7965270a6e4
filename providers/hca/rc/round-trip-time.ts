/**
 * The time until a packet is answered, estimated as TCP does (RFC 6298); and the shortest one seen,
 * which is that of a path without queues. Repeated packets are not timed (Karn's algorithm).
 */
import { TIME } from '../queue-pair/queue-pair-memory.js';
import type { RcMemory } from './memory.js';

/**
 * Before the first sample. Too short costs a few packets that are sent again, at doubling intervals
 * (no retries); too long, a flow whose first packet is lost among many waits while the others go.
 */
const INITIAL_TIMEOUT_US = 5000;

/** The time at the last look, in microseconds. */
export interface HcaClock {
  readonly nowUs: number;
}

/** Nothing is known yet: the shortest is Infinity. */
export function resetRoundTrip(times: RcMemory): void {
  times.shortestUs = Infinity;
  times.smoothedUs = 0;
}

/**
 * What was timed has been answered. Once for each ACK: a time that is handed to a function or
 * returned by one may become an object, so it finds them itself.
 */
export function addRoundTrip({ doubles, firstTime }: RcMemory, clock: HcaClock): void {
  const sampleUs = clock.nowUs - doubles[firstTime + TIME.TIMED_AT]!;
  const shortestUs = doubles[firstTime + TIME.SHORTEST]!;
  if (shortestUs === Infinity) {
    doubles[firstTime + TIME.SMOOTHED] = sampleUs;
    doubles[firstTime + TIME.DEVIATION] = sampleUs / 2;
  } else {
    const error = sampleUs - doubles[firstTime + TIME.SMOOTHED]!;
    const deviationUs = doubles[firstTime + TIME.DEVIATION]!;
    doubles[firstTime + TIME.DEVIATION] = deviationUs + (Math.abs(error) - deviationUs) / 4;
    doubles[firstTime + TIME.SMOOTHED]! += error / 8;
  }
  if (sampleUs < shortestUs) doubles[firstTime + TIME.SHORTEST] = sampleUs;
}

/** What queues add to the shortest time, as a ratio; Infinity when nothing is known. */
export function inflationOf({ shortestUs, smoothedUs }: RcMemory): number {
  return shortestUs === Infinity ? Infinity : smoothedUs / shortestUs;
}

/**
 * The requester waits for longer than an answer takes, by all that is known of it, and then probes.
 * @param leastUs of such a wait
 * @param backoff times so long
 */
export function awaitAnswer(
  { doubles, firstTime }: RcMemory,
  clock: HcaClock,
  leastUs: number,
  backoff: number,
): void {
  const known = doubles[firstTime + TIME.SHORTEST] !== Infinity;
  const usualUs = doubles[firstTime + TIME.SMOOTHED]! + 4 * doubles[firstTime + TIME.DEVIATION]!;
  const waitUs = Math.max(known ? usualUs : INITIAL_TIMEOUT_US, leastUs);
  doubles[firstTime + TIME.PROBE_DEADLINE] = clock.nowUs + waitUs * backoff;
}
