/**
 * State table of a send over umad. The kernel reports that a send was accepted, that a response
 * arrived or that none did, and nothing else. A send without response is done once it is accepted;
 * one that the kernel silently drops ends by a timer.
 *
 * A row lists the actions, in order, and the next state. A pair that has no row changes nothing.
 */

import { row, type StateTable } from '../../../plugins/cm/provider.js';

export type SendState =
  /** Being written; no response is expected. */
  | 'TELLING'
  /** Being written; a response is expected. */
  | 'ASKING'
  /** The kernel waits for the response, and repeats. */
  | 'WAITING'
  /**
   * Cancelled; its report is the scheduler's next task. Later reports of the kernel are ignored.
   */
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
