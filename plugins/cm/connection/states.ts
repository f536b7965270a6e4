/**
 * The connection state machines of the CM as tables (IBTA 12.9.7, or Linux where the two differ),
 * run by common/table-runner.ts.
 *
 * A row has the next state, which is set first, and the actions, in order; the consumer is notified
 * last. An input without a row in a state is unexpected: it is counted and logged, nothing else.
 *
 * Where IBTA leaves the choice:
 * - DREQ is answered by DREP at once; DREQ_RCVD is passed through.
 * - A repeated REQ that waits for the consumer is answered by MRA, so that the peer does not use up
 *   its retries (rdma_cm does the same with a delay).
 * - A repeated REQ in REP_SENT gets REP again at once.
 * - In the QUEUED states, a REQ or DREQ waits for its turn (request-limiter.ts).
 * - ICMP is a hint (wait.ts): it brings a retry forward. Three hints to three messages over a
 *   second are believed, unless a message of the peer arrives in between.
 * - A connect that is given up ends by REJ 4 in IDLE; a later REP meets an unknown id and is
 *   answered by REJ 6.
 */

import { row, type Row, type StateTable } from '../common/table-runner.js';

export type CmRole = 'active' | 'passive';

export const CM_STATES = [
  'IDLE',
  'REQ_QUEUED',
  'REQ_SENT',
  'MRA_REQ_RCVD',
  'REP_RCVD',
  'REQ_RCVD',
  'MRA_REQ_SENT',
  'REP_SENT',
  'MRA_REP_RCVD',
  'ESTABLISHED',
  'DREQ_QUEUED',
  'DREQ_SENT',
  'DREQ_RCVD',
  'TIMEWAIT',
] as const;
export type CmState = (typeof CM_STATES)[number];

export const CM_INPUTS = [
  // from the peer; REQ is a copy of the one that created the connection
  'REQ',
  'MRA',
  'REP',
  'RTU',
  'REJ',
  /** REJ with reason 10. */
  'REJ_STALE',
  'DREQ',
  'DREP',
  'LAP',
  /** Unexpected everywhere: we never send LAP. */
  'APR',
  // from the consumer
  'connect',
  'accept',
  /** Another process answers. */
  'handOver',
  'reject',
  'disconnect',
  'abandon',
  /** The module closes. */
  'close',
  // from this side
  /** The request may be sent (request-limiter.ts). */
  'turn',
  /** The wait for an answer has ended: with, and without, retries left. */
  'retry',
  'exhausted',
  /** The consumer's time limit for connecting. */
  'deadline',
  'timewaitOver',
  'qpReady',
  'qpFailed',
  /** The communication-established event, or the consumer has seen data. */
  'commEst',
  /** An ICMP hint that the peer is unreachable; and enough of them to believe it. */
  'hint',
  'unreachable',
  /** The wait that a hint shortened has ended. */
  'repeat',
  /** The peer uses its queue pair in another connection: this one is stale. */
  'stale',
  /** Leads on from DREQ_RCVD. */
  'answer',
] as const;
export type CmInput = (typeof CM_INPUTS)[number];

export type CmAction =
  /** Raises `turn`, now or later. */
  | 'awaitTurn'
  | 'sendReq'
  | 'sendMraReq'
  | 'sendRep'
  | 'sendRtu'
  | 'sendDreq'
  | 'sendDrep'
  /** Answers a REQ: message 0, local id 0. */
  | 'rejectReq'
  /** Answers a REQ that MRA has given our id: message 0. */
  | 'rejectReqMra'
  /** Answers a REP: message 1. */
  | 'rejectRep'
  /** After a timeout: message 2, reason 4; remote id 0 if a connect is given up. */
  | 'rejectTimeout'
  /** The consumer gives up between REP and RTU: message 2, reason 28. */
  | 'rejectOther'
  /** Stale connection, reason 10. */
  | 'rejectStale'
  /** Answers a LAP by APR: unsupported, as there are no alternate paths on RoCE. */
  | 'refusePath'
  | 'startRetries'
  | 'startDreqRetries'
  | 'nextRetry'
  | 'extendWait'
  /** Brings the next retry forward once. */
  | 'hastenRepeat'
  | 'resumeWait'
  | 'startDeadline'
  | 'stopTimers'
  | 'startTimewait'
  /** Active side: INIT to RTR to RTS; raises qpReady or qpFailed. */
  | 'raiseQp'
  /** Passive side: RTR to RTS; raises qpReady or qpFailed. */
  | 'startQp'
  | 'failQp'
  /** Suppresses further events. */
  | 'mute'
  /** Raises `answer`. */
  | 'goOn'
  | 'reportEstablished'
  | 'reportRejected'
  | 'reportUnreachable'
  | 'reportTimedOut'
  | 'reportAcceptFailed'
  | 'reportDisconnected'
  | 'reportDisconnectedByPeer'
  | 'reportTimewaitExit';

type CmTable = StateTable<CmState, CmInput, CmAction>;

const closeQuietly = row('TIMEWAIT', 'stopTimers', 'mute', 'failQp', 'sendDreq', 'startTimewait');

const ESTABLISHED = {
  DREQ: row('DREQ_RCVD', 'stopTimers', 'goOn'),
  REJ: row('TIMEWAIT', 'stopTimers', 'failQp', 'startTimewait', 'reportDisconnectedByPeer'),
  REJ_STALE: row('TIMEWAIT', 'stopTimers', 'failQp', 'startTimewait', 'reportDisconnectedByPeer'),
  DREP: row('ESTABLISHED'),
  MRA: row('ESTABLISHED'),
  LAP: row('ESTABLISHED', 'refusePath'),
  disconnect: row('DREQ_QUEUED', 'failQp', 'awaitTurn'),
  abandon: closeQuietly,
  close: closeQuietly,
  stale: row('DREQ_QUEUED', 'failQp', 'awaitTurn', 'reportDisconnectedByPeer'),
  commEst: row('ESTABLISHED'),
} as const;

const ending = row('TIMEWAIT', 'stopTimers', 'startTimewait', 'reportDisconnected');

const ENDING: CmTable = {
  DREQ_QUEUED: {
    turn: row('DREQ_SENT', 'sendDreq', 'startDreqRetries'),
    DREQ: row('TIMEWAIT', 'sendDrep', 'startTimewait', 'reportDisconnected'),
    DREP: row('DREQ_QUEUED'),
    REJ: ending,
    REJ_STALE: ending,
    REQ: row('DREQ_QUEUED'),
    REP: row('DREQ_QUEUED'),
    RTU: row('DREQ_QUEUED'),
    MRA: row('DREQ_QUEUED'),
    LAP: row('DREQ_QUEUED'),
    unreachable: ending,
    disconnect: row('DREQ_QUEUED'),
    abandon: row('TIMEWAIT', 'mute', 'sendDreq', 'startTimewait'),
    close: row('TIMEWAIT', 'mute', 'sendDreq', 'startTimewait'),
    commEst: row('DREQ_QUEUED'),
    stale: row('DREQ_QUEUED'),
  },
  DREQ_SENT: {
    DREP: ending,
    // Both sides disconnect at the same time: each answers, neither waits for a DREP.
    DREQ: row('TIMEWAIT', 'stopTimers', 'sendDrep', 'startTimewait', 'reportDisconnected'),
    REJ: ending,
    REJ_STALE: ending,
    REQ: row('DREQ_SENT'),
    REP: row('DREQ_SENT'),
    RTU: row('DREQ_SENT'),
    MRA: row('DREQ_SENT'),
    LAP: row('DREQ_SENT'),
    retry: row('DREQ_SENT', 'sendDreq', 'nextRetry'),
    hint: row('DREQ_SENT', 'hastenRepeat'),
    repeat: row('DREQ_SENT', 'sendDreq', 'resumeWait'),
    exhausted: ending,
    unreachable: ending,
    disconnect: row('DREQ_SENT'),
    abandon: row('TIMEWAIT', 'stopTimers', 'mute', 'startTimewait'),
    close: row('TIMEWAIT', 'stopTimers', 'mute', 'startTimewait'),
    commEst: row('DREQ_SENT'),
    stale: row('DREQ_SENT'),
  },
  DREQ_RCVD: {
    answer: row('TIMEWAIT', 'failQp', 'sendDrep', 'startTimewait', 'reportDisconnectedByPeer'),
  },
  TIMEWAIT: {
    DREQ: row('TIMEWAIT', 'sendDrep'),
    REQ: row('TIMEWAIT', 'rejectStale'),
    REP: row('TIMEWAIT'),
    RTU: row('TIMEWAIT'),
    REJ: row('TIMEWAIT'),
    REJ_STALE: row('TIMEWAIT'),
    DREP: row('TIMEWAIT'),
    MRA: row('TIMEWAIT'),
    LAP: row('TIMEWAIT'),
    disconnect: row('TIMEWAIT'),
    abandon: row('TIMEWAIT', 'mute'),
    close: row('TIMEWAIT', 'mute'),
    commEst: row('TIMEWAIT'),
    timewaitOver: row('IDLE', 'reportTimewaitExit'),
  },
};

const WAITING_FOR_REP = {
  REP: row('REP_RCVD', 'stopTimers', 'raiseQp'),
  REJ: row('IDLE', 'stopTimers', 'reportRejected'),
  REJ_STALE: row('TIMEWAIT', 'stopTimers', 'startTimewait', 'reportRejected'),
  exhausted: row('IDLE', 'stopTimers', 'reportUnreachable'),
  deadline: row('IDLE', 'stopTimers', 'rejectTimeout', 'reportTimedOut'),
  unreachable: row('IDLE', 'stopTimers', 'reportUnreachable'),
  disconnect: row('IDLE', 'stopTimers', 'rejectTimeout', 'failQp', 'reportDisconnected'),
  abandon: row('IDLE', 'stopTimers', 'rejectTimeout', 'mute'),
  close: row('IDLE', 'stopTimers', 'rejectTimeout', 'mute'),
} as const;

export const ACTIVE_TABLE: CmTable = {
  IDLE: {
    connect: row('REQ_QUEUED', 'startDeadline', 'awaitTurn'),
  },
  REQ_QUEUED: {
    turn: row('REQ_SENT', 'sendReq', 'startRetries'),
    deadline: row('IDLE', 'stopTimers', 'reportTimedOut'),
    unreachable: row('IDLE', 'stopTimers', 'reportUnreachable'),
    disconnect: row('IDLE', 'stopTimers', 'failQp', 'reportDisconnected'),
    abandon: row('IDLE', 'stopTimers', 'mute'),
    close: row('IDLE', 'stopTimers', 'mute'),
  },
  REQ_SENT: {
    ...WAITING_FOR_REP,
    MRA: row('MRA_REQ_RCVD', 'extendWait'),
    retry: row('REQ_SENT', 'sendReq', 'nextRetry'),
    hint: row('REQ_SENT', 'hastenRepeat'),
    repeat: row('REQ_SENT', 'sendReq', 'resumeWait'),
  },
  MRA_REQ_RCVD: {
    ...WAITING_FOR_REP,
    MRA: row('MRA_REQ_RCVD'),
    retry: row('MRA_REQ_RCVD', 'sendReq', 'nextRetry'),
    hint: row('MRA_REQ_RCVD', 'hastenRepeat'),
    repeat: row('MRA_REQ_RCVD', 'sendReq', 'resumeWait'),
  },
  // Left within the same call, once the queue pair is raised.
  REP_RCVD: {
    qpReady: row('ESTABLISHED', 'sendRtu', 'reportEstablished'),
    qpFailed: row('IDLE', 'rejectRep', 'failQp', 'reportUnreachable'),
    stale: row('TIMEWAIT', 'rejectRep', 'startTimewait', 'reportRejected'),
  },
  ESTABLISHED: { ...ESTABLISHED, REP: row('ESTABLISHED', 'sendRtu') },
  ...ENDING,
};

const WAITING_FOR_CONSUMER = {
  accept: row('REP_SENT', 'sendRep', 'startRetries'),
  handOver: row('IDLE'),
  REJ: row('IDLE'),
  REJ_STALE: row('IDLE'),
  stale: row('IDLE'),
} as const;

const handshakeFailed = row('IDLE', 'stopTimers', 'failQp', 'reportAcceptFailed');
const quit = ['stopTimers', 'failQp', 'rejectOther', 'startTimewait'] as const;

const WAITING_FOR_RTU = {
  RTU: row('ESTABLISHED', 'stopTimers', 'startQp'),
  commEst: row('ESTABLISHED', 'stopTimers', 'startQp'),
  REJ: handshakeFailed,
  REJ_STALE: row('TIMEWAIT', 'stopTimers', 'failQp', 'startTimewait', 'reportAcceptFailed'),
  DREQ: row('DREQ_RCVD', 'stopTimers', 'goOn'),
  exhausted: row('IDLE', 'stopTimers', 'failQp', 'rejectTimeout', 'reportAcceptFailed'),
  unreachable: handshakeFailed,
  stale: handshakeFailed,
  disconnect: row('TIMEWAIT', ...quit, 'reportDisconnected'),
  abandon: row('TIMEWAIT', ...quit, 'mute'),
  close: row('TIMEWAIT', ...quit, 'mute'),
} as const;

export const PASSIVE_TABLE: CmTable = {
  REQ_RCVD: {
    ...WAITING_FOR_CONSUMER,
    REQ: row('MRA_REQ_SENT', 'sendMraReq'),
    reject: row('IDLE', 'rejectReq'),
    close: row('IDLE', 'rejectReq'),
  },
  MRA_REQ_SENT: {
    ...WAITING_FOR_CONSUMER,
    REQ: row('MRA_REQ_SENT', 'sendMraReq'),
    reject: row('IDLE', 'rejectReqMra'),
    close: row('IDLE', 'rejectReqMra'),
  },
  REP_SENT: {
    ...WAITING_FOR_RTU,
    REQ: row('REP_SENT', 'sendRep'),
    MRA: row('MRA_REP_RCVD', 'extendWait'),
    LAP: row('REP_SENT', 'refusePath'),
    retry: row('REP_SENT', 'sendRep', 'nextRetry'),
    hint: row('REP_SENT', 'hastenRepeat'),
    repeat: row('REP_SENT', 'sendRep', 'resumeWait'),
  },
  MRA_REP_RCVD: {
    ...WAITING_FOR_RTU,
    REQ: row('MRA_REP_RCVD'),
    MRA: row('MRA_REP_RCVD'),
    LAP: row('MRA_REP_RCVD', 'refusePath'),
    retry: row('MRA_REP_RCVD', 'sendRep', 'nextRetry'),
    hint: row('MRA_REP_RCVD', 'hastenRepeat'),
    repeat: row('MRA_REP_RCVD', 'sendRep', 'resumeWait'),
  },
  ESTABLISHED: {
    ...ESTABLISHED,
    qpReady: row('ESTABLISHED', 'reportEstablished'),
    qpFailed: row('DREQ_QUEUED', 'failQp', 'awaitTurn', 'reportAcceptFailed'),
    REQ: row('ESTABLISHED'),
    RTU: row('ESTABLISHED'),
  },
  ...ENDING,
};

/** The row for an input, or undefined if it is unexpected in that state. */
export function transition(
  role: CmRole,
  state: CmState,
  input: CmInput,
): Row<CmState, CmAction> | undefined {
  return (role === 'active' ? ACTIVE_TABLE : PASSIVE_TABLE)[state]?.[input];
}
