/**
 * Service id resolution for datagrams (SIDR, IBTA 12.11) as tables, like connection/states.ts:
 * `asking` is the side that wants a queue pair number, `asked` the one that has the service.
 *
 * Where IBTA leaves the choice: the asked side remembers an answer for a while and repeats it if
 * the request comes again, without asking the consumer again. It repeats nothing by timer. A
 * request that the consumer never answers ends when its sender must have given up.
 */
import { row, type StateTable } from '../common/table-runner.js';

export type SidrState = 'IDLE' | 'SIDR_REQ_SENT' | 'SIDR_REQ_RCVD' | 'SIDR_REP_SENT';

export type SidrInput =
  // from the peer; SIDR_REQ is a copy of the one that created the request
  | 'SIDR_REQ'
  | 'SIDR_REP'
  // from the consumer
  | 'resolve'
  | 'cancel'
  | 'accept'
  | 'reject'
  /** The module closes. */
  | 'close'
  // from this side
  /** The wait for an answer has ended: with, and without, retries left. */
  | 'retry'
  | 'exhausted'
  /** The consumer's time limit. */
  | 'deadline'
  /** An ICMP hint that the peer is unreachable; and enough of them to believe it. */
  | 'hint'
  | 'unreachable'
  /** The wait that a hint shortened has ended. */
  | 'repeat'
  /** No copy of the request can come any more. */
  | 'expired';

export type SidrAction =
  | 'sendReq'
  | 'sendRep'
  | 'startRetries'
  | 'nextRetry'
  | 'hastenRepeat'
  | 'resumeWait'
  | 'startDeadline'
  /** Asked: starts or restarts the time after which the request is forgotten. */
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
    // The consumer has not answered yet; its answer will serve this copy, too.
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
