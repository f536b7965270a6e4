/**
 * Service id resolution for datagrams (SIDR, IBTA 12.11) as tables, like connection/states.ts:
 * `asking` is the side that wants a queue pair number, `asked` the one that has the service.
 *
 * Where we choose: an answer is kept for a while, so that the repetition of a request whose
 * SIDR_REP was lost gets the same answer without the consumer being asked again. Nothing is
 * repeated by timer on the asked side. A request that the consumer leaves
 * unanswered ends when its sender must have given up.
 */
import { row, type StateTable } from '../common/table-runner.js';

export type SidrState = 'IDLE' | 'SIDR_REQ_SENT' | 'SIDR_REQ_RCVD' | 'SIDR_REP_SENT';

export type SidrInput =
  // from the peer; a SIDR_REQ here repeats the one that made the request
  | 'SIDR_REQ'
  | 'SIDR_REP'
  // from the consumer
  | 'resolve'
  | 'cancel'
  | 'accept'
  | 'reject'
  /** The module closes. */
  | 'close'
  // from here
  /** The wait for an answer is over: with, and without, retries left. */
  | 'retry'
  | 'exhausted'
  /** The consumer's time limit. */
  | 'deadline'
  /** The network says that the peer's address does not answer; and has said so often enough. */
  | 'hint'
  | 'unreachable'
  /** The wait that a hint has cut short is over. */
  | 'repeat'
  /** No peer can still ask for this. */
  | 'expired';

export type SidrAction =
  | 'sendReq'
  | 'sendRep'
  | 'startRetries'
  | 'nextRetry'
  | 'hastenRepeat'
  | 'resumeWait'
  | 'startDeadline'
  /** Asked: starts, or starts anew, the time after which the request is forgotten. */
  | 'startLife'
  | 'stopTimers'
  | 'reportAnswer'
  | 'reportUnreachable'
  | 'reportTimedOut';

type SidrTable = StateTable<SidrState, SidrInput, SidrAction>;

export const ASKING_TABLE: SidrTable = {
  IDLE: {
    resolve: row('SIDR_REQ_SENT', 'sendReq', 'startRetries', 'startDeadline'),
  },
  SIDR_REQ_SENT: {
    SIDR_REP: row('IDLE', 'stopTimers', 'reportAnswer'),
    retry: row('SIDR_REQ_SENT', 'sendReq', 'nextRetry'),
    hint: row('SIDR_REQ_SENT', 'hastenRepeat'),
    repeat: row('SIDR_REQ_SENT', 'sendReq', 'resumeWait'),
    exhausted: row('IDLE', 'stopTimers', 'reportUnreachable'),
    deadline: row('IDLE', 'stopTimers', 'reportTimedOut'),
    unreachable: row('IDLE', 'stopTimers', 'reportUnreachable'),
    cancel: row('IDLE', 'stopTimers'),
    close: row('IDLE', 'stopTimers'),
  },
};

export const ASKED_TABLE: SidrTable = {
  SIDR_REQ_RCVD: {
    // The consumer is still thinking: its answer will be the answer to this one as well.
    SIDR_REQ: row('SIDR_REQ_RCVD', 'startLife'),
    accept: row('SIDR_REP_SENT', 'sendRep', 'startLife'),
    reject: row('SIDR_REP_SENT', 'sendRep', 'startLife'),
    expired: row('IDLE', 'stopTimers'),
    close: row('IDLE', 'stopTimers', 'sendRep'),
  },
  SIDR_REP_SENT: {
    SIDR_REQ: row('SIDR_REP_SENT', 'sendRep', 'startLife'),
    expired: row('IDLE', 'stopTimers'),
    close: row('IDLE', 'stopTimers'),
  },
};
