/**
 * Endpoint states as data (DAT facts 2.2): DAT's names and numbers, which call is legal in which
 * state, and the subtype of DAT_INVALID_STATE that names a state.
 *
 * One deviation, ours on purpose (mailing list, June 2006): requests are legal in
 * COMPLETION_PENDING. They wait in the send queue, whose doorbell is withheld until the connection
 * is established.
 */
import type { DatSubtype } from '../errors/index.js';

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

/** The states that an endpoint of ours enters. */
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

/** Calls whose legality depends on the state. */
export type EpCall =
  | 'postReceive'
  | 'postRequest'
  | 'connect'
  | 'accept'
  | 'disconnectGraceful'
  | 'disconnectAbrupt'
  | 'reset'
  | 'free';

/**
 * legal; illegal (DAT_INVALID_STATE); no-op; flushed: taken, and completed as flushed at once;
 * withheld: taken, and sent when the connection is established.
 */
export type Legality = 'legal' | 'illegal' | 'no-op' | 'flushed' | 'withheld';

/** What a state allows. */
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
  'connect',
  'accept',
  'disconnectGraceful',
  'disconnectAbrupt',
  'reset',
  'free',
] as const satisfies readonly EpCall[];

// prettier-ignore
const ROWS: Readonly<Record<EpStateName, Row>> = {
  //                                                      recv req con acc dgr dab rst free
  UNCONNECTED:                  ['EP_UNCONNECTED',       Y,  NO, Y,  Y,  NO, NO, N,  Y],
  RESERVED:                     ['EP_RESERVED',          Y,  NO, NO, NO, NO, NO, NO, NO],
  PASSIVE_CONNECTION_PENDING:   ['EP_PASSCONNPENDING',   Y,  NO, NO, Y,  NO, NO, NO, NO],
  ACTIVE_CONNECTION_PENDING:    ['EP_ACTCONNPENDING',    Y,  NO, NO, NO, Y,  Y,  NO, Y],
  TENTATIVE_CONNECTION_PENDING: ['EP_TENTCONNPENDING',   Y,  NO, NO, Y,  NO, NO, NO, NO],
  COMPLETION_PENDING:           ['EP_COMPLPENDING',      Y,  W,  NO, NO, Y,  Y,  NO, Y],
  CONNECTED:                    ['EP_CONNECTED',         Y,  Y,  NO, NO, Y,  Y,  NO, Y],
  DISCONNECT_PENDING:           ['EP_DISCPENDING',       Y,  NO, NO, NO, NO, Y,  NO, Y],
  DISCONNECTED:                 ['EP_DISCONNECTED',      F,  F,  NO, NO, N,  N,  Y,  Y],
};

/** The table: state by state. */
export const EP_STATES: Readonly<Record<EpStateName, EpStateRule>> = Object.fromEntries(
  Object.entries(ROWS).map(([name, [subtype, ...cells]]) => [
    name,
    {
      subtype: `DAT_INVALID_STATE_${subtype}`,
      calls: Object.fromEntries(COLUMNS.map((call, i) => [call, cells[i] ?? NO])),
    },
  ]),
) as Record<EpStateName, EpStateRule>;

/** What an endpoint does of its own accord; calls of the consumer are in `EpCall`. */
export type EpTrigger =
  | 'connect'
  | 'accept'
  | 'accept-undone'
  | 'established'
  | 'refused'
  | 'disconnecting'
  | 'ended'
  | 'reset';

/** Where a trigger may start, and where it leads (DAT facts 2.2, transition table). */
export const EP_TRANSITIONS: Readonly<
  Record<EpTrigger, { readonly from: readonly EpStateName[]; readonly to: EpStateName }>
> = {
  connect: { from: ['UNCONNECTED'], to: 'ACTIVE_CONNECTION_PENDING' },
  accept: {
    from: ['UNCONNECTED', 'PASSIVE_CONNECTION_PENDING', 'TENTATIVE_CONNECTION_PENDING'],
    to: 'COMPLETION_PENDING',
  },
  /** The call that began it has thrown. */
  'accept-undone': {
    from: ['ACTIVE_CONNECTION_PENDING', 'COMPLETION_PENDING'],
    to: 'UNCONNECTED',
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
  reset: { from: ['DISCONNECTED'], to: 'UNCONNECTED' },
};
