/**
 * The life of a posted MAD as a table: what the openib discussion of 4 October 2004 calls the
 * agent's list. "Work requests" are a send's entries on the port (one; several with RMPP); an event
 * arises when the last of them has completed.
 *
 * A row says what is done, in this order, and where the send goes. A pair that has no row changes
 * nothing.
 */

export type SendState =
  /** On the port's list (posted, or waiting for room on QP1); no response is expected. */
  | 'TELLING'
  /** On the port's list; a response is expected. */
  | 'ASKING'
  /** Sent; waiting for the response. The timeout runs. */
  | 'WAITING'
  /** The response has overtaken the completion of its request. */
  | 'ANSWERED'
  /** Cancelled while on the port: QP1 still reads its bytes. */
  | 'CANCELLED'
  /** Ended off the port; its report is the scheduler's next task. */
  | 'RETURNING'
  /** Reported. */
  | 'DONE';

export type SendEvent =
  /** The work requests have completed; or one of them has failed; or was flushed for good. */
  | 'sent'
  | 'failed'
  /** The matching response has arrived. */
  | 'response'
  /** The wait is over: with, and without, retries left. */
  | 'retry'
  | 'exhausted'
  /** The client cancels, or unregisters. */
  | 'cancel'
  /** Cancelled, and the port has taken it off its overflow list: it was never on QP1. */
  | 'withdrawn'
  /** The scheduler's task runs. */
  | 'returned'
  /** The port is gone: nothing on it will complete. */
  | 'torn';

export type SendAction =
  | 'post'
  | 'startTimer'
  | 'stopTimer'
  /** Calls the receive handler: always ahead of the report. */
  | 'deliver'
  /** What `report` will say, unless an earlier action has said it. */
  | 'statusSuccess'
  | 'statusOfCompletion'
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
    failed: row('DONE', 'statusOfCompletion', 'report'),
    cancel: row('CANCELLED', 'statusFlushed'),
    torn: row('RETURNING', 'statusFlushed', 'deferReport'),
  },
  ASKING: {
    sent: row('WAITING', 'startTimer'),
    failed: row('DONE', 'statusOfCompletion', 'report'),
    response: row('ANSWERED', 'statusSuccess', 'deliver'),
    cancel: row('CANCELLED', 'statusFlushed'),
    torn: row('RETURNING', 'statusFlushed', 'deferReport'),
  },
  WAITING: {
    response: row('DONE', 'stopTimer', 'statusSuccess', 'deliver', 'report'),
    retry: row('ASKING', 'post'),
    exhausted: row('RETURNING', 'statusTimeout', 'deferReport'),
    cancel: row('RETURNING', 'stopTimer', 'statusFlushed', 'deferReport'),
    torn: row('RETURNING', 'stopTimer', 'statusFlushed', 'deferReport'),
  },
  // The answer is here, so the request arrived: its completion, a failed one too, ends it well.
  ANSWERED: {
    sent: row('DONE', 'report'),
    failed: row('DONE', 'report'),
    torn: row('RETURNING', 'deferReport'),
  },
  CANCELLED: {
    sent: row('DONE', 'report'),
    failed: row('DONE', 'report'),
    withdrawn: row('RETURNING', 'deferReport'),
    torn: row('RETURNING', 'deferReport'),
  },
  RETURNING: {
    returned: row('DONE', 'report'),
  },
  DONE: {},
};
