/**
 * Endpoint states as data: the names and numbers of DAT_EP_STATE, which call is legal in which
 * state, and the subtype of DAT_INVALID_STATE that names a state.
 *
 * One deviation, ours on purpose (mailing list, June 2006): requests are legal in
 * COMPLETION_PENDING. They wait in the send queue, whose doorbell is withheld until the connection
 * is established.
 */
import type { DatSubtype } from '../../errors/index.js';
import type { CmEvent } from '../../spi/index.js';

/** DAT_EP_STATE. */
export const EpState = {
  UNCONNECTED: 0,
  UNCONFIGURED_UNCONNECTED: 1,
  RESERVED: 2,
  UNCONFIGURED_RESERVED: 3,
  PASSIVE_CONNECTION_PENDING: 4,
  UNCONFIGURED_PASSIVE: 5,
  ACTIVE_CONNECTION_PENDING: 6,
  TENTATIVE_CONNECTION_PENDING: 7,
  UNCONFIGURED_TENTATIVE: 8,
  CONNECTED: 9,
  DISCONNECT_PENDING: 10,
  DISCONNECTED: 11,
  COMPLETION_PENDING: 12,
  CONNECTED_SINGLE_PATH: 13,
  CONNECTED_MULTI_PATH: 14,
} as const;

/** The states that our endpoints enter. */
export type EpStateName =
  | 'UNCONNECTED'
  | 'RESERVED'
  | 'PASSIVE_CONNECTION_PENDING'
  | 'ACTIVE_CONNECTION_PENDING'
  | 'TENTATIVE_CONNECTION_PENDING'
  | 'COMPLETION_PENDING'
  | 'CONNECTED'
  | 'DISCONNECT_PENDING'
  | 'DISCONNECTED';

/** Initial states: of an endpoint of the consumer, and of one made for a request. */
export type EpInitialState = Extract<EpStateName, 'UNCONNECTED' | 'TENTATIVE_CONNECTION_PENDING'>;

/** Calls whose legality depends on the state. */
export type EpCall =
  | 'postReceive'
  /** Sends, RDMA and atomics alike. */
  | 'postRequest'
  | 'bindRmr'
  /** `connect`, `dupConnect` and `commonConnect`. */
  | 'connect'
  /** A reserved service point takes the endpoint. */
  | 'reserve'
  | 'accept'
  | 'disconnectGraceful'
  | 'disconnectAbrupt'
  | 'reset'
  | 'free'
  /** `ep.modify`, by the field that is modified: see modify.ts. */
  | 'modifyPz'
  | 'modifyAttributes'
  | 'modifyTransport'
  /** `query`, `getStatus`, `recvQuery`, `counters`, `setWatermark`. */
  | 'query';

/**
 * legal; illegal (DAT_INVALID_STATE); no-op; flushed: accepted, and completed as flushed
 * immediately; withheld: accepted, and sent when the connection is established.
 */
export type Legality = 'legal' | 'illegal' | 'no-op' | 'flushed' | 'withheld';

/** Calls that a state allows. */
export interface EpStateRule {
  /** Subtype of DAT_INVALID_STATE in this state. */
  readonly subtype: DatSubtype;
  readonly calls: Readonly<Record<EpCall, Legality>>;
}

type Row = readonly [StateSubtype, ...Legality[]];
/** A subtype of DAT_INVALID_STATE that names a state, without that prefix. */
type StateSubtype = DatSubtype extends infer S
  ? S extends `DAT_INVALID_STATE_${infer Name}`
    ? Name
    : never
  : never;

const Y = 'legal';
const NO = 'illegal';
const N = 'no-op';
const F = 'flushed';
const W = 'withheld';

const COLUMNS = [
  'postReceive',
  'postRequest',
  'bindRmr',
  'connect',
  'reserve',
  'accept',
  'disconnectGraceful',
  'disconnectAbrupt',
  'reset',
  'free',
] as const satisfies readonly EpCall[];

// prettier-ignore
const ROWS: Readonly<Record<EpStateName, Row>> = {
  //                                                    recv req bind con rsv acc dgr dab rst free
  UNCONNECTED:                  ['EP_UNCONNECTED',     Y,  NO, NO,  Y,  Y,  Y,  NO, NO, N,  Y],
  RESERVED:                     ['EP_RESERVED',        Y,  NO, NO,  NO, NO, NO, NO, NO, NO, NO],
  PASSIVE_CONNECTION_PENDING:   ['EP_PASSCONNPENDING', Y,  NO, NO,  NO, NO, Y,  NO, NO, NO, NO],
  ACTIVE_CONNECTION_PENDING:    ['EP_ACTCONNPENDING',  Y,  NO, NO,  NO, NO, NO, Y,  Y,  NO, Y],
  TENTATIVE_CONNECTION_PENDING: ['EP_TENTCONNPENDING', Y,  NO, NO,  NO, NO, Y,  NO, NO, NO, NO],
  COMPLETION_PENDING:           ['EP_COMPLPENDING',    Y,  W,  W,   NO, NO, NO, Y,  Y,  NO, Y],
  CONNECTED:                    ['EP_CONNECTED',       Y,  Y,  Y,   NO, NO, NO, Y,  Y,  NO, Y],
  DISCONNECT_PENDING:           ['EP_DISCPENDING',     Y,  NO, NO,  NO, NO, NO, N,  Y,  NO, Y],
  DISCONNECTED:                 ['EP_DISCONNECTED',    F,  F,  F,   NO, NO, NO, N,  N,  Y,  Y],
};

/** `ep.modify`, where it is legal; each state is legal for `query`. */
const MODIFIABLE_IN: Readonly<Record<Extract<EpCall, `modify${string}`>, readonly EpStateName[]>> =
  {
    modifyPz: ['UNCONNECTED', 'TENTATIVE_CONNECTION_PENDING'],
    modifyAttributes: [
      'UNCONNECTED',
      'RESERVED',
      'PASSIVE_CONNECTION_PENDING',
      'TENTATIVE_CONNECTION_PENDING',
    ],
    modifyTransport: ['UNCONNECTED'],
  };

function modifications(state: EpStateName): Record<keyof typeof MODIFIABLE_IN, Legality> {
  const legality = (call: keyof typeof MODIFIABLE_IN): Legality =>
    MODIFIABLE_IN[call].includes(state) ? Y : NO;
  return {
    modifyPz: legality('modifyPz'),
    modifyAttributes: legality('modifyAttributes'),
    modifyTransport: legality('modifyTransport'),
  };
}

/** The table: state by state. */
export const EP_STATES: Readonly<Record<EpStateName, EpStateRule>> = Object.fromEntries(
  Object.entries(ROWS).map(([name, [subtype, ...cells]]) => [
    name,
    {
      subtype: `DAT_INVALID_STATE_${subtype}`,
      calls: {
        ...Object.fromEntries(COLUMNS.map((call, i) => [call, cells[i] ?? NO])),
        ...modifications(name as EpStateName),
        query: Y,
      },
    },
  ]),
) as Record<EpStateName, EpStateRule>;

const ANSWER_FIRST = 'answer its connection request first: cr.accept() or cr.reject()';
const END_FIRST = 'end it first: ep.disconnect(), then ep.reset()';

/** Advice for an illegal call, by state. */
const ADVICE: Readonly<Record<EpStateName, string>> = {
  UNCONNECTED: 'connect it first: ep.connect(), or cr.accept(ep)',
  RESERVED: 'rsp.free() gives it back',
  PASSIVE_CONNECTION_PENDING: ANSWER_FIRST,
  TENTATIVE_CONNECTION_PENDING: ANSWER_FIRST,
  ACTIVE_CONNECTION_PENDING: 'wait for its connection event, or end it: ep.disconnect()',
  COMPLETION_PENDING: END_FIRST,
  CONNECTED: END_FIRST,
  DISCONNECT_PENDING: 'wait for its DISCONNECTED event, then call ep.reset()',
  DISCONNECTED: 'call ep.reset() first',
};

/** The hint of the error for a call that is illegal in a state. */
export function stateAdvice(state: EpStateName, call: EpCall): string | undefined {
  const hasNothingToEnd = state === 'UNCONNECTED' && call.startsWith('disconnect');
  return hasNothingToEnd ? undefined : ADVICE[state];
}

/** Triggers of an endpoint's transitions; calls of the consumer are in `EpCall`. */
export type EpTrigger =
  | 'reserve'
  | 'unreserve'
  | 'request'
  | 'reject'
  | 'connect'
  | 'accept'
  | 'established'
  | 'refused'
  | 'disconnecting'
  | 'ended'
  | 'torn-down'
  | 'reset';

/**
 * The states that a trigger may start from, and the state that it leads to. A connect or accept
 * that throws restores the endpoint's state. An endpoint that the provider makes for a request
 * begins in TENTATIVE_CONNECTION_PENDING, and ends when the request is rejected.
 */
export const EP_TRANSITIONS: Readonly<
  Record<EpTrigger, { readonly from: readonly EpStateName[]; readonly to: EpStateName }>
> = {
  /** A reserved service point holds it; the service point is freed. */
  reserve: { from: ['UNCONNECTED'], to: 'RESERVED' },
  unreserve: { from: ['RESERVED'], to: 'UNCONNECTED' },
  /** The request of the reserved service point has arrived; the consumer rejects it. */
  request: { from: ['RESERVED'], to: 'PASSIVE_CONNECTION_PENDING' },
  reject: { from: ['PASSIVE_CONNECTION_PENDING'], to: 'UNCONNECTED' },
  connect: { from: ['UNCONNECTED'], to: 'ACTIVE_CONNECTION_PENDING' },
  accept: {
    from: ['UNCONNECTED', 'PASSIVE_CONNECTION_PENDING', 'TENTATIVE_CONNECTION_PENDING'],
    to: 'COMPLETION_PENDING',
  },
  established: { from: ['ACTIVE_CONNECTION_PENDING', 'COMPLETION_PENDING'], to: 'CONNECTED' },
  /** Rejected, unreachable, timed out, or the handshake failed. */
  refused: { from: ['ACTIVE_CONNECTION_PENDING', 'COMPLETION_PENDING'], to: 'DISCONNECTED' },
  /** An ordered disconnect: requests drain (graceful), then the rest is flushed. */
  disconnecting: {
    from: ['CONNECTED', 'ACTIVE_CONNECTION_PENDING', 'COMPLETION_PENDING'],
    to: 'DISCONNECT_PENDING',
  },
  /** The peer disconnected, the connection broke, or the ordered disconnect is done. */
  ended: {
    from: ['ACTIVE_CONNECTION_PENDING', 'COMPLETION_PENDING', 'CONNECTED', 'DISCONNECT_PENDING'],
    to: 'DISCONNECTED',
  },
  /** The adapter is closed while a service point or a request holds the endpoint. */
  'torn-down': {
    from: ['RESERVED', 'PASSIVE_CONNECTION_PENDING', 'TENTATIVE_CONNECTION_PENDING'],
    to: 'DISCONNECTED',
  },
  reset: { from: ['DISCONNECTED'], to: 'UNCONNECTED' },
};

// Outcomes of the CM and the connection events that they become: a table, after dapl's.

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
