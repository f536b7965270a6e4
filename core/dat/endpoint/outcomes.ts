/** Outcomes of the CM and the connection events that they become: a table, after dapl's. */
import type { CmEvent } from '../../spi/index.js';

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

/** A failed connect or accept. */
export type RefusalName = Exclude<ConnectionEventName, 'ESTABLISHED' | 'DISCONNECTED' | 'BROKEN'>;

type Refusal = Extract<
  CmEvent,
  { type: 'rejected' | 'unreachable' | 'timed-out' | 'accept-failed' }
>;

type RefusalKind = Refusal['type'] | 'rejected-by-consumer';

/**
 * The event of a refusal for the side that called `connect`, and for the one that called `accept`,
 * which has one event for all of them.
 */
export const CM_REFUSALS: Readonly<
  Record<RefusalKind, { readonly active: RefusalName; readonly passive: RefusalName }>
> = {
  'rejected-by-consumer': { active: 'PEER_REJECTED', passive: 'ACCEPT_COMPLETION_ERROR' },
  rejected: { active: 'NON_PEER_REJECTED', passive: 'ACCEPT_COMPLETION_ERROR' },
  unreachable: { active: 'UNREACHABLE', passive: 'ACCEPT_COMPLETION_ERROR' },
  'timed-out': { active: 'TIMED_OUT', passive: 'ACCEPT_COMPLETION_ERROR' },
  'accept-failed': { active: 'NON_PEER_REJECTED', passive: 'ACCEPT_COMPLETION_ERROR' },
};

/** The event that a refusal becomes. */
export function refusalOf(event: Refusal, active: boolean): RefusalName {
  const byConsumer = event.type === 'rejected' && event.consumer;
  const row = CM_REFUSALS[byConsumer ? 'rejected-by-consumer' : event.type];
  return active ? row.active : row.passive;
}

/** The reason in words. */
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

/** The reject reasons that an application may see (IBTA 12.6.7.2). */
const REASONS: Readonly<Record<number, string>> = {
  1: ': the peer has no queue pair left',
  3: ': the peer is out of resources',
  4: ': time-out at the peer',
  8: ': nothing listens on that connection qualifier',
  10: ': stale connection',
  28: ': consumer reject',
};

/** True if the answered request no longer exists: the peer's doing, not the consumer's. */
export function isRequestGone(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'ENOTCONN';
}
