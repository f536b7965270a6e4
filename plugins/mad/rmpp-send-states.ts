/**
 * The sending side of an RMPP transfer as a table (IBTA 13.6.4; Linux ib_mad's rules). Segments are
 * sent up to the window; then an ACK is due. A pair without a row changes nothing.
 */

export type RmppSendState =
  /** Segments of the window are on the port. */
  | 'SENDING'
  /** All segments of the window are sent; the ACK timer runs. */
  | 'AWAITING_ACK'
  /** The result is decided; some work requests are still on the port. */
  | 'ENDING'
  | 'ENDED';

export type RmppSendEvent =
  /** A segment was sent, and another may be (segmentSent) or needs an ACK first (windowSent). */
  | 'segmentSent'
  | 'windowSent'
  /** An ACK of some segments, or of all. */
  | 'acked'
  | 'ackedAll'
  /** The ACK timer expired: too early for a retry (probe), with retries left, or without. */
  | 'probe'
  | 'retry'
  | 'exhausted'
  /** The peer has sent STOP or ABORT, or an invalid ACK (refused). */
  | 'abortedByPeer'
  | 'refused'
  /** A work request failed, or was flushed for good. */
  | 'failed'
  /** The transfer is not wanted any more (stop); the peer is to be told, too (cancel). */
  | 'stop'
  | 'cancel'
  /** The last work request has completed. */
  | 'drained';

export type RmppSendAction =
  /** Posts the segments that the window allows. */
  | 'sendMore'
  /** Resends the oldest and the newest segment without an ACK (resendEnds), or all of them. */
  | 'resendEnds'
  | 'resendWindow'
  | 'startTimer'
  | 'stopTimer'
  /** Resets the retries, and the time until one is spent. */
  | 'reloadRetries'
  | 'spendRetry'
  /** Sets the result that the transfer reports. */
  | 'resultSuccess'
  | 'resultTimeout'
  | 'resultAborted'
  | 'resultFailed'
  | 'resultWithdrawn'
  /** Withdraws requests that wait for room on QP1. */
  | 'withdraw'
  /** Tells the peer that the transfer is aborted: too many retries, or no reason given. */
  | 'abortTooManyRetries'
  | 'abortUnspecified'
  /**
   * Sends an ACK of segment 0, which turns the direction: the response may begin ("double-sided").
   */
  | 'turn'
  | 'report';

export interface RmppSendRow {
  readonly actions: readonly RmppSendAction[];
  readonly next: RmppSendState;
}

type Row = Readonly<Partial<Record<RmppSendEvent, RmppSendRow>>>;

const row = (next: RmppSendState, ...actions: RmppSendAction[]): RmppSendRow => ({
  next,
  actions,
});

export const RMPP_SEND_TABLE: Readonly<Record<RmppSendState, Row>> = {
  SENDING: {
    segmentSent: row('SENDING', 'sendMore'),
    windowSent: row('AWAITING_ACK', 'startTimer'),
    acked: row('SENDING', 'reloadRetries', 'sendMore'),
    ackedAll: row('ENDING', 'withdraw', 'resultSuccess', 'turn'),
    abortedByPeer: row('ENDING', 'withdraw', 'resultAborted'),
    refused: row('ENDING', 'withdraw', 'resultAborted'),
    failed: row('ENDING', 'withdraw', 'resultFailed'),
    stop: row('ENDING', 'withdraw', 'resultWithdrawn'),
    cancel: row('ENDING', 'withdraw', 'resultWithdrawn', 'abortUnspecified'),
  },
  AWAITING_ACK: {
    acked: row('SENDING', 'stopTimer', 'reloadRetries', 'sendMore'),
    ackedAll: row('ENDING', 'stopTimer', 'resultSuccess', 'turn'),
    probe: row('SENDING', 'resendEnds'),
    retry: row('SENDING', 'spendRetry', 'resendWindow'),
    exhausted: row('ENDING', 'resultTimeout', 'abortTooManyRetries'),
    abortedByPeer: row('ENDING', 'stopTimer', 'resultAborted'),
    refused: row('ENDING', 'stopTimer', 'resultAborted'),
    stop: row('ENDING', 'stopTimer', 'resultWithdrawn'),
    cancel: row('ENDING', 'stopTimer', 'resultWithdrawn', 'abortUnspecified'),
  },
  ENDING: {
    drained: row('ENDED', 'report'),
    ackedAll: row('ENDING', 'turn'),
    // The peer has everything: the known result counts, not a later stop.
    stop: row('ENDING', 'withdraw'),
    cancel: row('ENDING', 'withdraw'),
  },
  // The peer missed our turning ACK: it repeats its last ACK.
  ENDED: {
    ackedAll: row('ENDED', 'turn'),
  },
};
