/**
 * The life of a posted MAD as a table; the openib discussion of 4 October 2004 calls it the agent's
 * list. Its transmission is one work request on the port, or an RMPP transfer of many
 * (rmpp-send-states.ts); here only its end matters, when it has no requests on the port any more.
 *
 * A row lists the actions in order, and the next state. A pair without a row changes nothing.
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
  /** Ended outside the port; the report is the scheduler's next task. */
  | 'RETURNING'
  /** Reported. */
  | 'DONE';

export type SendEvent =
  /**
   * The transmission has ended: with success, or with a work request that failed or was flushed for
   * good.
   */
  | 'sent'
  | 'failed'
  /** The matching response has arrived. */
  | 'response'
  /**
   * The timeout: extended because parts of the response have arrived, or with or without retries
   * left.
   */
  | 'arriving'
  | 'retry'
  | 'exhausted'
  /** The client cancels or unregisters, or QP1 is gone. */
  | 'cancel'
  /** Stopped in transmission with no requests on QP1. */
  | 'withdrawn'
  /** The scheduler's task runs. */
  | 'returned';

export type SendAction =
  | 'transmit'
  | 'startTimer'
  | 'stopTimer'
  /** Calls the receive handler: always before the report. */
  | 'deliver'
  /** Sets the status of `report`, unless an earlier action has set it. */
  | 'statusSuccess'
  | 'statusOfTransmission'
  | 'statusTimeout'
  | 'statusFlushed'
  /** Has the scheduler raise `returned`: no handler runs inside the caller's stack. */
  | 'deferReport'
  /** Calls the send handler and releases the send's resources. */
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
  // The response is here, so the request arrived: even a failed completion counts as success.
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
