/**
 * The life of a send over umad as a table. The kernel tells of a send that it has been taken, that
 * a response has come or that none has, and nothing else: a send without response is done when it
 * has been taken, and what the kernel drops without a word ends by a timer.
 *
 * A row says what is done, in this order, and where the send goes. A pair that has no row changes
 * nothing.
 */

import { row, type StateTable } from '../../../plugins/cm/provider.js';

export type SendState =
  /** Being written; no response is expected. */
  | 'TELLING'
  /** Being written; a response is expected. */
  | 'ASKING'
  /** The kernel waits for the response, and repeats. */
  | 'WAITING'
  /** Cancelled; its report is the scheduler's next task. The kernel goes on, unheard. */
  | 'RETURNING'
  /** Reported. */
  | 'DONE';

export type SendEvent =
  /** The kernel has taken it; or not. */
  | 'written'
  | 'refused'
  | 'response'
  /** The kernel's wait is over. */
  | 'timeout'
  /** The longest wait is over, and the kernel has said nothing. */
  | 'silence'
  | 'cancel'
  /** The agent has ended, or the device has. */
  | 'flush'
  /** The scheduler's task runs. */
  | 'returned';

export type SendAction =
  | 'startTimer'
  | 'stopTimer'
  /** Calls the receive handler: always ahead of the report. */
  | 'deliver'
  /** The result that `report` will give. */
  | 'statusSuccess'
  | 'statusTimeout'
  | 'statusFlushed'
  | 'statusFailed'
  /** Has the scheduler raise `returned`: no handler runs inside the caller's stack. */
  | 'deferReport'
  /** Calls the send handler. */
  | 'report';

export const SEND_TABLE: StateTable<SendState, SendEvent, SendAction> = {
  TELLING: {
    written: row('DONE', 'statusSuccess', 'report'),
    refused: row('DONE', 'statusFailed', 'report'),
    cancel: row('RETURNING', 'statusFlushed', 'deferReport'),
    flush: row('DONE', 'statusFlushed', 'report'),
  },
  ASKING: {
    written: row('WAITING', 'startTimer'),
    refused: row('DONE', 'statusFailed', 'report'),
    cancel: row('RETURNING', 'statusFlushed', 'deferReport'),
    flush: row('DONE', 'statusFlushed', 'report'),
  },
  WAITING: {
    response: row('DONE', 'stopTimer', 'statusSuccess', 'deliver', 'report'),
    timeout: row('DONE', 'stopTimer', 'statusTimeout', 'report'),
    silence: row('DONE', 'statusFailed', 'report'),
    cancel: row('RETURNING', 'stopTimer', 'statusFlushed', 'deferReport'),
    flush: row('DONE', 'stopTimer', 'statusFlushed', 'report'),
  },
  RETURNING: {
    returned: row('DONE', 'report'),
  },
};
