/**
 * The receiving side of an RMPP transfer as a table (IBTA 13.6.5; Linux ib_mad's rules). Events are
 * what a DATA segment turns out to be. A pair that has no row changes nothing.
 */

export type RmppReceiveState =
  | 'RECEIVING'
  /** Handed over; a peer that has lost the last ACK sends again and gets another. */
  | 'COMPLETE'
  | 'GONE';

export type RmppReceiveEvent =
  /** Kept, and there is nothing to say. */
  | 'kept'
  /** Kept, but one before it is missing; or it was the one that was missing. */
  | 'hole'
  /** Kept: all that the window allows are here. */
  | 'windowFull'
  /** Kept: all are here. */
  | 'complete'
  /** All up to it are here; or all are. */
  | 'repeated'
  /** Its last flag, number and lengths contradict what came before. */
  | 'inconsistent'
  /** There is no room for it. */
  | 'tooMuch'
  /** The timer: 40 s since the first segment; 10 s since the last. */
  | 'expired'
  /** The sender gives up. */
  | 'aborted'
  /** The agent unregisters, or there is no room to remember it. */
  | 'abandoned';

export type RmppReceiveAction =
  | 'ack'
  | 'openWindow'
  /** To tell repeated segments from a new transfer. */
  | 'linger'
  | 'deliver'
  /** Drops the bytes. */
  | 'release'
  | 'stopTimer'
  /** STOP and ABORT to the sender, with the code. */
  | 'stopNoResources'
  | 'abortInconsistent'
  | 'abortTooLong'
  | 'forget';

export interface RmppReceiveRow {
  readonly actions: readonly RmppReceiveAction[];
  readonly next: RmppReceiveState;
}

type Row = Readonly<Partial<Record<RmppReceiveEvent, RmppReceiveRow>>>;

const row = (next: RmppReceiveState, ...actions: RmppReceiveAction[]): RmppReceiveRow => ({
  next,
  actions,
});

export const RMPP_RECEIVE_TABLE: Readonly<Record<RmppReceiveState, Row>> = {
  RECEIVING: {
    hole: row('RECEIVING', 'ack'),
    windowFull: row('RECEIVING', 'openWindow', 'ack'),
    repeated: row('RECEIVING', 'ack'),
    complete: row('COMPLETE', 'ack', 'linger', 'deliver', 'release'),
    inconsistent: row('GONE', 'stopTimer', 'abortInconsistent', 'release', 'forget'),
    tooMuch: row('GONE', 'stopTimer', 'stopNoResources', 'release', 'forget'),
    expired: row('GONE', 'abortTooLong', 'release', 'forget'),
    aborted: row('GONE', 'stopTimer', 'release', 'forget'),
    abandoned: row('GONE', 'stopTimer', 'release', 'forget'),
  },
  COMPLETE: {
    repeated: row('COMPLETE', 'ack'),
    expired: row('GONE', 'forget'),
    abandoned: row('GONE', 'stopTimer', 'forget'),
  },
  GONE: {},
};
