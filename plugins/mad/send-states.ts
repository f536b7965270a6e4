/**
 * The life of a posted MAD as a table: what the openib discussion of 4 October 2004 calls the
 * agent's list. Its transmission is one work request on the port, or an RMPP transfer of many
 * (rmpp-send-states.ts); here it only matters when nothing of it is on the port any more.
 *
 * A row says what is done, in this order, and where the send goes. A pair that has no row changes
 * nothing.
 */

export type SendState =
  /** In transmission (on QP1, or waiting for room on it); no response is expected. */
  | 'TELLING'
  /** In transmission; a response is expected. */
  | 'ASKING'
  /** Sent; waiting for the response. The timeout runs. */
  | 'WAITING'
  /** The response has overtaken the completion of its request. */
  | 'ANSWERED'
  /** Cancelled in transmission: QP1 still reads its bytes. */
  | 'CANCELLED'
  /** Ended off the port; its report is the scheduler's next task. */
  | 'RETURNING'
  /** Reported. */
  | 'DONE';

export type SendEvent =
  /** The transmission has ended: well; or by a failed or for good flushed work request. */
  | 'sent'
  | 'failed'
  /** The matching response has arrived. */
  | 'response'
  /** The wait is over: parts of the response have come; or else with, or without, retries left. */
  | 'arriving'
  | 'retry'
  | 'exhausted'
  /** The client cancels, or unregisters; or QP1 is gone. */
  | 'cancel'
  /** Stopped in transmission with nothing of it on QP1. */
  | 'withdrawn'
  /** The scheduler's task runs. */
  | 'returned';

export type SendAction =
  | 'transmit'
  | 'startTimer'
  | 'stopTimer'
  /** Calls the receive handler: always ahead of the report. */
  | 'deliver'
  /** Sets the status of `report`, unless an earlier action has set it. */
  | 'statusSuccess'
  | 'statusOfTransmission'
  | 'statusTimeout'
  | 'statusFlushed'
  /** Has the scheduler raise `returned`: no handler runs inside the caller's stack. */
  | 'deferReport'
  /** Calls the send handler and drops what the send holds. */
  | 'report';

export interface SendRow {
  readonly actions: readonly SendAction[];
  readonly next: SendState;
}

type Table = Readonly<Record<SendState, Readonly<Partial<Record<SendEvent, SendRow>>>>>;

const row = (next: SendState, ...actions: SendAction[]): SendRow => ({ next, actions });

export const SEND_TABLE: Table = {
  TELLING: {
    sent: row('DONE', 'statusSuccess', 'report'),
    failed: row('DONE', 'statusOfTransmission', 'report'),
    cancel: row('CANCELLED', 'statusFlushed'),
  },
  ASKING: {
    sent: row('WAITING', 'startTimer'),
    failed: row('DONE', 'statusOfTransmission', 'report'),
    response: row('ANSWERED', 'statusSuccess', 'deliver'),
    cancel: row('CANCELLED', 'statusFlushed'),
  },
  WAITING: {
    response: row('DONE', 'stopTimer', 'statusSuccess', 'deliver', 'report'),
    arriving: row('WAITING', 'startTimer'),
    retry: row('ASKING', 'transmit'),
    exhausted: row('RETURNING', 'statusTimeout', 'deferReport'),
    cancel: row('RETURNING', 'stopTimer', 'statusFlushed', 'deferReport'),
  },
  // The answer is here, so the request arrived: its completion, a failed one too, ends it well.
  ANSWERED: {
    sent: row('DONE', 'report'),
    failed: row('DONE', 'report'),
    withdrawn: row('DONE', 'report'),
  },
  CANCELLED: {
    sent: row('DONE', 'report'),
    failed: row('DONE', 'report'),
    withdrawn: row('RETURNING', 'deferReport'),
  },
  RETURNING: {
    returned: row('DONE', 'report'),
  },
  DONE: {},
};
