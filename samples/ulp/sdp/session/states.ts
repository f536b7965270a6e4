/** The states of a connection, as of TCP: which half is open, and what comes next. */

export type StateName =
  'ESTABLISHED' | 'FIN_WAIT' | 'CLOSE_WAIT' | 'LAST_ACK' | 'TIME_WAIT' | 'CLOSED';

export type StateEvent = 'DIS_CONN_SENT' | 'DIS_CONN_RECEIVED' | 'CLOSED';

interface StateRule {
  /** This side may send data. */
  readonly maySend: boolean;
  /** The peer may. */
  readonly mayReceive: boolean;
  /** The end of the CM's connection is no surprise: both sides have said DisConn. */
  readonly isOver: boolean;
  readonly next: Readonly<Partial<Record<StateEvent, StateName>>>;
}

/**
 * The side that sent its DisConn first ends the connection of the CM when the peer's has come
 * (TIME_WAIT); the other one waits for that (LAST_ACK). Where they cross, both do.
 */
export const STATES: Readonly<Record<StateName, StateRule>> = {
  ESTABLISHED: {
    maySend: true,
    mayReceive: true,
    isOver: false,
    next: { DIS_CONN_SENT: 'FIN_WAIT', DIS_CONN_RECEIVED: 'CLOSE_WAIT', CLOSED: 'CLOSED' },
  },
  FIN_WAIT: {
    maySend: false,
    mayReceive: true,
    isOver: false,
    next: { DIS_CONN_RECEIVED: 'TIME_WAIT', CLOSED: 'CLOSED' },
  },
  CLOSE_WAIT: {
    maySend: true,
    mayReceive: false,
    isOver: false,
    next: { DIS_CONN_SENT: 'LAST_ACK', CLOSED: 'CLOSED' },
  },
  LAST_ACK: { maySend: false, mayReceive: false, isOver: true, next: { CLOSED: 'CLOSED' } },
  TIME_WAIT: { maySend: false, mayReceive: false, isOver: true, next: { CLOSED: 'CLOSED' } },
  CLOSED: { maySend: false, mayReceive: false, isOver: true, next: {} },
};
