/**
 * The state table of a connection: the directions that are open, and the events that close them.
 */

export type SessionState =
  /** Both sides may send. */
  | 'OPEN'
  /** This side sends no more; the peer may. */
  | 'WRITE_ENDED'
  /** The peer sends no more; this side may. */
  | 'READ_ENDED'
  /** Neither may send; anything that arrives is ignored. */
  | 'OVER';

export type SessionInput =
  /** The consumer has ended writing. */
  | 'shutdown'
  /** The consumer has ended writing and reading. */
  | 'close'
  | 'peer SHUTDOWN'
  | 'peer DISCONNECT';

export interface Transition {
  readonly next: SessionState;
  /** The message to the peer. */
  readonly send?: 'SHUTDOWN' | 'DISCONNECT';
}

/** librdmacm repeats SHUTDOWN if its consumer shuts down again: that changes nothing. */
export const SESSION_TRANSITIONS: Readonly<
  Record<SessionState, Readonly<Record<SessionInput, Transition>>>
> = {
  OPEN: {
    shutdown: { next: 'WRITE_ENDED', send: 'SHUTDOWN' },
    close: { next: 'OVER', send: 'DISCONNECT' },
    'peer SHUTDOWN': { next: 'READ_ENDED' },
    'peer DISCONNECT': { next: 'OVER' },
  },
  WRITE_ENDED: {
    shutdown: { next: 'WRITE_ENDED' },
    close: { next: 'OVER', send: 'DISCONNECT' },
    'peer SHUTDOWN': { next: 'OVER' },
    'peer DISCONNECT': { next: 'OVER' },
  },
  READ_ENDED: {
    shutdown: { next: 'OVER', send: 'DISCONNECT' },
    close: { next: 'OVER', send: 'DISCONNECT' },
    'peer SHUTDOWN': { next: 'READ_ENDED' },
    'peer DISCONNECT': { next: 'OVER' },
  },
  OVER: {
    shutdown: { next: 'OVER' },
    close: { next: 'OVER' },
    'peer SHUTDOWN': { next: 'OVER' },
    'peer DISCONNECT': { next: 'OVER' },
  },
};

/** True if this side may send data. */
export function mayWrite(state: SessionState): boolean {
  return state === 'OPEN' || state === 'READ_ENDED';
}

/** True if the peer may send data. */
export function mayRead(state: SessionState): boolean {
  return state === 'OPEN' || state === 'WRITE_ENDED';
}
