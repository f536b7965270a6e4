/**
 * The receiving side of an RMPP transfer as a table (IBTA 13.6.5; Linux ib_mad's rules). Events
 * classify DATA segments. A pair without a row changes nothing.
 */

export type RmppReceiveState =
  | 'RECEIVING'
  /** Delivered. A peer that lost the last ACK repeats segments, and gets the ACK again. */
  | 'COMPLETE'
  | 'GONE';

export type RmppReceiveEvent =
  /** Stored; no ACK is due. */
  | 'kept'
  /** Stored; an earlier segment is missing, or this was the missing one. */
  | 'hole'
  /** Stored: all segments of the window have arrived. */
  | 'windowFull'
  /** Stored: all segments have arrived. */
  | 'complete'
  /** All segments up to it have arrived, or all segments. */
  | 'repeated'
  /** Its last flag, number and lengths contradict earlier segments. */
  | 'inconsistent'
  /** There is no memory for it. */
  | 'tooMuch'
  /** The timer expired: 40 s since the first segment, or 10 s since the last. */
  | 'expired'
  /** The sender aborted. */
  | 'aborted'
  /** The agent unregisters, or the transfer cannot be remembered. */
  | 'abandoned';

export type RmppReceiveAction =
  | 'ack'
  | 'openWindow'
  /** Starts the time in which repeated segments are told from a new transfer. */
  | 'linger'
  | 'deliver'
  /** Releases the memory. */
  | 'release'
  | 'stopTimer'
  /** Sends STOP or ABORT to the sender, with the code. */
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
