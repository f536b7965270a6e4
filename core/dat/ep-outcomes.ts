/** What the CM reports, and which connection event it becomes: a table (DAT facts 3.5). */
import type { CmEvent } from '../spi/index.js';

/** DAT_CONNECTION_EVENT_* without the prefix. */
export type ConnectionEventName =
  | 'ESTABLISHED'
  | 'PEER_REJECTED'
  | 'NON_PEER_REJECTED'
  | 'ACCEPT_COMPLETION_ERROR'
  | 'DISCONNECTED'
  | 'BROKEN'
  | 'TIMED_OUT'
  | 'UNREACHABLE';

/** A connect or accept that came to nothing. */
export type RefusalName = Exclude<ConnectionEventName, 'ESTABLISHED' | 'DISCONNECTED' | 'BROKEN'>;

type Refusal = Extract<
  CmEvent,
  { type: 'rejected' | 'unreachable' | 'timed-out' | 'accept-failed' }
>;

/** The side that called `connect`. */
const ACTIVE: Readonly<Record<Refusal['type'], RefusalName>> = {
  rejected: 'NON_PEER_REJECTED',
  unreachable: 'UNREACHABLE',
  'timed-out': 'TIMED_OUT',
  'accept-failed': 'NON_PEER_REJECTED',
};

/** Which event a refusal is. The accepting side has one for all of them. */
export function refusalOf(event: Refusal, active: boolean): RefusalName {
  if (!active) return 'ACCEPT_COMPLETION_ERROR';
  if (event.type === 'rejected' && event.consumer) return 'PEER_REJECTED';
  return ACTIVE[event.type];
}

/** Why, in words. */
export function detailOf(event: Refusal): string {
  switch (event.type) {
    case 'rejected':
      return event.consumer
        ? 'the peer rejected the request'
        : `refused with reason ${event.reason}${REASONS[event.reason] ?? ''}`;
    case 'timed-out':
      return 'no answer within the timeout';
    case 'unreachable':
    case 'accept-failed':
      return event.detail;
  }
}

/** The reasons that an application meets (IBTA 12.6.7.2). */
const REASONS: Readonly<Record<number, string>> = {
  1: ': the peer has no queue pair left',
  3: ': the peer is out of resources',
  4: ': time-out at the peer',
  8: ': nobody listens on that connection qualifier',
  10: ': stale connection',
  28: ': consumer reject',
};

/** The request that is answered is no more: the peer's doing, not the consumer's. */
export function isRequestGone(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'ENOTCONN';
}
