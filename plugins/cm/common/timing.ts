/**
 * Timeouts and retries of the CM. An unanswered message is repeated after half a second, then at
 * doubling intervals: a fast link recovers fast, and a slow peer is not flooded. Linux has fixed
 * intervals of 4 to 6 s (drivers/infiniband/core/cma.c). REQ carries the number of retries.
 */
import { checkInteger, outOfRange } from '../../../core/spi/checks/index.js';

/** The largest 5-bit time code: a code means 4.096 us * 2^code (IBTA 12.7.4). */
export const MAX_TIME_CODE = 31;

const UNIT_US = 4.096;

/**
 * Microseconds of a code. Where 0 means "never" (the ACK timeout of a QP), the caller handles it.
 * @throws RangeError unless 0 to 31
 */
export function timeUsOfCode(code: number): number {
  checkInteger('time code', code, 0, MAX_TIME_CODE, outOfRange);
  return UNIT_US * 2 ** code;
}

export interface RetryPolicy {
  readonly firstUs: number;
  readonly limitUs: number;
  readonly retries: number;
}

/** Max CM Retries of our REQs, as in Linux. */
export const MAX_CM_RETRIES = 15;
/** How long the peer may take for an answer: 4.3 s, as in Linux. */
export const REMOTE_CM_RESPONSE_TIMEOUT = 20;
/** How long we may take: 1.07 s. A Linux peer without an RTU repeats its REP after that. */
export const LOCAL_CM_RESPONSE_TIMEOUT = 18;
/** An unanswered REQ or SIDR_REQ of ours: 0.5, 1, 2, 4, 4 ... s, 54 s in all. */
export const REQ_RETRIES: RetryPolicy = {
  firstUs: 500_000,
  limitUs: 4_000_000,
  retries: MAX_CM_RETRIES,
};

/**
 * ICMP hints that a peer is unreachable are believed after this many, over at least this long
 * (connection/wait.ts). A message is repeated soon after a hint, so a verdict takes 1 to 2 s.
 */
export const HINTS_NEEDED = 3;
export const HINTS_SPAN_US = 1_000_000;
export const HINTED_REPEAT_US = 500_000;

/** DREQ: 0.2, 0.4, 0.5, 0.5 ... s, 3.6 s in all: a dead peer delays teardown by no more. */
export const DREQ_RETRIES: RetryPolicy = { firstUs: 200_000, limitUs: 500_000, retries: 7 };

/**
 * The most unanswered REQs and DREQs to one peer: enough to keep any host busy, and few for the
 * receive queue of its QP1 (Linux: 512).
 */
export const REQUESTS_PER_PEER = 64;
/** After so many attempts (3.5 s) a request no longer delays others: its peer may be gone. */
export const ATTEMPTS_THAT_COUNT = 3;

/** A SIDR_REQ is forgotten 69 s after its last copy: Linux repeats one for 65 s, we for less. */
export const SIDR_UNANSWERED_US = timeUsOfCode(24);
/** A SIDR_REP is repeated on request for 8.6 s: Linux asks every 4 s. */
export const SIDR_ANSWERED_US = timeUsOfCode(21);

/**
 * A REQ that was rejected or handed over is remembered for 8.6 s after its last copy: twice the
 * interval at which Linux or we repeat one, so that one copy may be lost.
 */
export const REQ_ANSWERED_US = 2 * timeUsOfCode(REMOTE_CM_RESPONSE_TIMEOUT);
/** The most remembered REQs of each kind: as many as may be half open. */
export const MAX_ANSWERED = 1024;

const LONGEST_REP_WAIT = 20;

/** An unanswered REP: as REQ, with the peer's response time as the limit and its retries. */
export function repRetries(localCmResponseTimeout: number, maxCmRetries: number): RetryPolicy {
  const theirsUs = timeUsOfCode(Math.min(localCmResponseTimeout, LONGEST_REP_WAIT));
  const limitUs = Math.max(theirsUs, REQ_RETRIES.firstUs);
  return { firstUs: REQ_RETRIES.firstUs, limitUs, retries: maxCmRetries };
}

/** The wait of the n-th attempt (from 0). */
export function retryWaitUs(policy: RetryPolicy, attempt: number): number {
  return Math.min(policy.firstUs * 2 ** Math.min(attempt, MAX_TIME_CODE), policy.limitUs);
}

/** The longest wait that we grant an MRA: 69 s, which rdma_cm asks for. */
const LONGEST_SERVICE_TIMEOUT = 24;
/** The service timeout in our MRAs: 17 s, renewed with every repeated REQ. */
export const MRA_SERVICE_TIMEOUT = 22;

/** The wait that an MRA asks for, path time included. */
export function mraWaitUs(serviceTimeout: number, ackTimeout: number): number {
  const serviceUs = timeUsOfCode(Math.min(serviceTimeout, LONGEST_SERVICE_TIMEOUT));
  return serviceUs + timeUsOfCode(Math.min(ackTimeout, LONGEST_SERVICE_TIMEOUT));
}

/** The local ACK timeout that we propose by default: 1.07 s. */
export const DEFAULT_ACK_TIMEOUT = 18;
/** The longest timewait: after 8.6 s no packet of the old connection is in flight. */
const LONGEST_TIMEWAIT = 21;

/** How long packets of the connection may stay in flight (IBTA 12.9.8.4). */
export function timewaitUs(ackTimeout: number): number {
  return timeUsOfCode(Math.min(ackTimeout, LONGEST_TIMEWAIT));
}

/**
 * The active side's ACK timeout code once the target's ACK delay is known: the sum of both times,
 * rounded up to a code as Linux does it.
 */
export function ackTimeoutWithDelay(ackTimeout: number, targetAckDelay: number): number {
  const sum =
    ackTimeout >= targetAckDelay
      ? ackTimeout + (targetAckDelay >= ackTimeout - 1 ? 1 : 0)
      : targetAckDelay + (ackTimeout >= targetAckDelay - 1 ? 1 : 0);
  return Math.min(sum, MAX_TIME_CODE);
}
