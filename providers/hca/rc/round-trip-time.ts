/**
 * The time until a packet is answered, estimated as TCP does (RFC 6298); and the shortest one seen,
 * which is that of a path without queues. Repeated packets are not timed (Karn's algorithm).
 */
import { type ConnectionMemory, TIME } from '../queue-pair/queue-pair-memory.js';

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
export function resetRoundTrip(times: ConnectionMemory): void {
  times.shortestUs = Infinity;
  times.smoothedUs = 0;
}

/**
 * What was timed has been answered. Once for each ACK: a time that is handed to a function or
 * returned by one may become an object, so it finds them itself.
 */
export function addRoundTrip({ doubles, firstDouble }: ConnectionMemory, clock: HcaClock): void {
  const sampleUs = clock.nowUs - doubles[firstDouble + TIME.timedAtUs]!;
  const shortestUs = doubles[firstDouble + TIME.shortestUs]!;
  if (shortestUs === Infinity) {
    doubles[firstDouble + TIME.smoothedUs] = sampleUs;
    doubles[firstDouble + TIME.deviationUs] = sampleUs / 2;
  } else {
    const error = sampleUs - doubles[firstDouble + TIME.smoothedUs]!;
    const deviationUs = doubles[firstDouble + TIME.deviationUs]!;
    doubles[firstDouble + TIME.deviationUs] = deviationUs + (Math.abs(error) - deviationUs) / 4;
    doubles[firstDouble + TIME.smoothedUs]! += error / 8;
  }
  if (sampleUs < shortestUs) doubles[firstDouble + TIME.shortestUs] = sampleUs;
}

/** What queues add to the shortest time, as a ratio; Infinity when nothing is known. */
export function inflationOf({ shortestUs, smoothedUs }: ConnectionMemory): number {
  return shortestUs === Infinity ? Infinity : smoothedUs / shortestUs;
}

/**
 * The requester waits for longer than an answer takes, by all that is known of it, and then probes.
 * @param leastUs of such a wait
 * @param backoff times so long
 */
export function awaitAnswer(
  { doubles, firstDouble }: ConnectionMemory,
  clock: HcaClock,
  leastUs: number,
  backoff: number,
): void {
  const known = doubles[firstDouble + TIME.shortestUs] !== Infinity;
  const usualUs =
    doubles[firstDouble + TIME.smoothedUs]! + 4 * doubles[firstDouble + TIME.deviationUs]!;
  const waitUs = Math.max(known ? usualUs : INITIAL_TIMEOUT_US, leastUs);
  doubles[firstDouble + TIME.probeDeadlineUs] = clock.nowUs + waitUs * backoff;
}
