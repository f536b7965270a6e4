/**
 * The times of the CM. A message that is lost is sent again after half a second, then at doubling
 * intervals, so that a fast link recovers fast and a slow peer is not pestered; Linux has fixed
 * intervals of 4 to 6 s (drivers/infiniband/core/cma.c). The number of retries is what goes into
 * REQ.
 */
import { MAX_TIME_CODE, timeUsOfCode } from '../wire/time-codes.js';

export interface RetryPolicy {
  readonly firstUs: number;
  readonly limitUs: number;
  readonly retries: number;
}

/** Max CM Retries of our REQs: Linux has 15 too. */
export const MAX_CM_RETRIES = 15;
/** How long the peer may take for an answer: 4.3 s, which is what Linux says. */
export const REMOTE_CM_RESPONSE_TIMEOUT = 20;
/** How long we take: 1.07 s, after which a Linux peer that has not got RTU repeats REP. */
export const LOCAL_CM_RESPONSE_TIMEOUT = 18;
/** An unanswered REQ or SIDR_REQ of ours: 0.5, 1, 2, 4, 4 ... s, 54 s in all. */
export const REQ_RETRIES: RetryPolicy = {
  firstUs: 500_000,
  limitUs: 4_000_000,
  retries: MAX_CM_RETRIES,
};

/**
 * Hints of the network that a peer does not answer (hint-tally.ts): so many, over so long at least,
 * are believed. A message that one has come to is repeated soon, so that this takes 1 to 2 s.
 */
export const HINTS_NEEDED = 3;
export const HINTS_SPAN_US = 1_000_000;
export const HINTED_REPEAT_US = 500_000;

/** DREQ: 0.2, 0.4, 0.5, 0.5 ... s, 3.6 s in all; a dead peer costs no more. */
export const DREQ_RETRIES: RetryPolicy = { firstUs: 200_000, limitUs: 500_000, retries: 7 };

/**
 * REQs and DREQs to one peer that may be unanswered at a time: more than any host answers within
 * the time that it takes to answer one, and few for the receive queue of its QP1 (Linux: 512).
 */
export const TURNS_PER_PEER = 64;
/** A request that is not answered by then (3.5 s) holds up no other: its peer may be gone. */
export const ATTEMPTS_OF_A_TURN = 3;

/** A SIDR_REQ is forgotten 69 s after it came last: Linux asks for 65 s, and we for less. */
export const SIDR_UNANSWERED_US = timeUsOfCode(24);
/** A SIDR_REP can be had again for 8.6 s: Linux asks every 4 s. */
export const SIDR_ANSWERED_US = timeUsOfCode(21);

/**
 * A REQ that was rejected, or handed over, is remembered for 8.6 s after it came last: twice what
 * Linux waits before it repeats one, and we, so that one copy may be lost.
 */
export const REQ_ANSWERED_US = 2 * timeUsOfCode(REMOTE_CM_RESPONSE_TIMEOUT);
/** How many are of each: as many as may be half open. */
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

/** What an MRA may ask of us at most: 69 s, which is what rdma_cm asks. */
const LONGEST_SERVICE_TIMEOUT = 24;
/** The service timeout in our MRAs: 17 s, renewed with every repeated REQ. */
export const MRA_SERVICE_TIMEOUT = 22;

/** The wait that an MRA asks for, path time included. */
export function mraWaitUs(serviceTimeout: number, ackTimeout: number): number {
  const serviceUs = timeUsOfCode(Math.min(serviceTimeout, LONGEST_SERVICE_TIMEOUT));
  return serviceUs + timeUsOfCode(Math.min(ackTimeout, LONGEST_SERVICE_TIMEOUT));
}

/** Local ACK timeout that we propose unless told: 1.07 s. */
export const DEFAULT_ACK_TIMEOUT = 18;
/** Beyond this, a packet of the old connection is not on its way any more: 8.6 s. */
const LONGEST_TIMEWAIT = 21;

/** Packets of the connection may be under way that long (IBTA 12.9.8.4). */
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
