/**
 * The sending side of an RMPP transfer as a table (IBTA 13.6.4; Linux ib_mad's rules). Segments go
 * out as far as the window allows; then an ACK must come. A pair that has no row changes nothing.
 */

export type RmppSendState =
  /** Segments of the window are on the port. */
  | 'SENDING'
  /** All that the window allows is sent: the ACK timer runs. */
  | 'AWAITING_ACK'
  /** Decided; some of its work requests are still on the port. */
  | 'ENDING'
  | 'ENDED';

export type RmppSendEvent =
  /** A segment has left and another may; or none may until an ACK comes. */
  | 'segmentSent'
  | 'windowSent'
  /** An ACK in the middle; of everything. */
  | 'acked'
  | 'ackedAll'
  /** The ACK timer: too early to count as a retry; with, and without, retries left. */
  | 'probe'
  | 'retry'
  | 'exhausted'
  /** The peer has sent STOP or ABORT; or an ACK that makes no sense. */
  | 'abortedByPeer'
  | 'refused'
  /** A work request has failed, or was flushed for good. */
  | 'failed'
  /** The transfer is not wanted any more; and the peer is to know. */
  | 'stop'
  | 'cancel'
  /** The last work request has completed. */
  | 'drained';

export type RmppSendAction =
  /** Posts what the window allows. */
  | 'sendMore'
  /** Sends the oldest and the newest segment without ACK again; all segments without ACK. */
  | 'resendEnds'
  | 'resendWindow'
  | 'startTimer'
  | 'stopTimer'
  /** Has the retries, and the time until one is spent, begin anew. */
  | 'reloadRetries'
  | 'spendRetry'
  /** Sets the result that the transfer reports. */
  | 'resultSuccess'
  | 'resultTimeout'
  | 'resultAborted'
  | 'resultFailed'
  | 'resultWithdrawn'
  /** Takes what waits for room on QP1 back. */
  | 'withdraw'
  /** Tells the peer that no more comes: too many retries; no reason given. */
  | 'abortTooManyRetries'
  | 'abortUnspecified'
  /** An ACK of segment 0 turns the direction: the response may begin ("double-sided"). */
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
    // The peer has it all: what is known of its end counts, not what is asked for now.
    stop: row('ENDING', 'withdraw'),
    cancel: row('ENDING', 'withdraw'),
  },
  // The peer has not heard us turn: it repeats its last ACK.
  ENDED: {
    ackedAll: row('ENDED', 'turn'),
  },
};
