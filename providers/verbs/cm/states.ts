/**
 * The state machines of connections over librdmacm as tables. The messages, their retries and the
 * duplicates are the kernel's (ib_cm); what is ours is the order of its calls, the queue pair's
 * transitions, and what the consumer hears.
 *
 * A row says what is done, in this order, and the state afterwards; the state is set first. An
 * action that raises an input stands last. A pair without a row is unexpected: noted, nothing else.
 *
 * Where we choose:
 * - The passive side's queue pair goes to RTR before the reply and to RTS when established (IBTA);
 *   librdmacm's own queue pairs go to RTS at once.
 * - A request to disconnect that crosses ours is answered too: rdma_disconnect sends DREP then.
 * - The identifier lives until the kernel says TIMEWAIT_EXIT, or until that is long overdue.
 */

import { row, type StateTable } from '../../../plugins/cm/provider.js';

export type CmState =
  | 'IDLE'
  | 'ADDR_QUERY'
  | 'ROUTE_QUERY'
  | 'REQ_SENT'
  | 'REP_RCVD'
  | 'REQ_RCVD'
  | 'REP_SENT'
  | 'ESTABLISHED'
  | 'DREQ_SENT'
  | 'TIMEWAIT';

export type CmInput =
  // events of rdma_cm
  | 'ADDR_RESOLVED'
  | 'ADDR_ERROR'
  | 'ROUTE_RESOLVED'
  | 'ROUTE_ERROR'
  | 'CONNECT_RESPONSE'
  | 'CONNECT_ERROR'
  | 'UNREACHABLE'
  | 'REJECTED'
  | 'ESTABLISHED'
  | 'DISCONNECTED'
  | 'DEVICE_REMOVAL'
  | 'ADDR_CHANGE'
  | 'TIMEWAIT_EXIT'
  // from the consumer
  | 'connect'
  | 'accept'
  | 'disconnect'
  | 'abandon'
  /** The module closes. */
  | 'close'
  // from here
  /** The communication-established event, or the consumer has seen data. */
  | 'commEst'
  /** The consumer's time limit for connecting. */
  | 'deadline'
  /** TIMEWAIT has lasted long enough. */
  | 'timewaitOver'
  | 'qpReady'
  | 'qpFailed'
  /** A call of librdmacm has failed. */
  | 'callFailed';

export type CmAction =
  | 'startDeadline'
  | 'stopTimers'
  | 'startTimewait'
  /** rdma_resolve_route. */
  | 'resolveRoute'
  /** rdma_connect. */
  | 'sendReq'
  /** Active side: INIT to RTR to RTS, rdma_establish; raises qpReady or qpFailed. */
  | 'raiseQp'
  /** Passive side: RTR to RTS; raises qpReady or qpFailed. */
  | 'startQp'
  | 'failQp'
  /** rdma_notify: the kernel stops repeating the reply. */
  | 'notify'
  /** rdma_disconnect; raises callFailed. */
  | 'sendDreq'
  /** rdma_disconnect in answer to the peer's; whether it is needed only the kernel knows. */
  | 'sendDrep'
  /** rdma_destroy_id: the kernel ends the exchange in progress (REJ, DREQ or DREP, once). */
  | 'destroyId'
  /** No event follows. */
  | 'mute'
  | 'reportEstablished'
  | 'reportRejected'
  | 'reportUnreachable'
  | 'reportTimedOut'
  | 'reportAcceptFailed'
  | 'reportDisconnected'
  | 'reportDisconnectedByPeer'
  /** Neither side wanted it: the event says why. */
  | 'reportLost'
  | 'reportTimewaitExit';

type CmTable = StateTable<CmState, CmInput, CmAction>;

const notConnected = row('IDLE', 'stopTimers', 'destroyId', 'reportUnreachable');
const dropped = row('IDLE', 'stopTimers', 'mute', 'destroyId');

const connecting = (state: CmState) =>
  ({
    ADDR_ERROR: notConnected,
    ROUTE_ERROR: notConnected,
    CONNECT_ERROR: notConnected,
    UNREACHABLE: notConnected,
    DEVICE_REMOVAL: notConnected,
    callFailed: notConnected,
    deadline: row('IDLE', 'stopTimers', 'destroyId', 'reportTimedOut'),
    disconnect: row('IDLE', 'stopTimers', 'failQp', 'destroyId', 'reportDisconnected'),
    abandon: dropped,
    close: dropped,
    ADDR_CHANGE: row(state),
    commEst: row(state),
  }) as const;

/** The kernel still holds the connection: DREQ tells the peer, by the path it had. */
const lost = row('DREQ_SENT', 'failQp', 'reportLost', 'sendDreq');
const leftByPeer = ['failQp', 'startTimewait', 'reportDisconnectedByPeer'] as const;

const ESTABLISHED = {
  DISCONNECTED: row('TIMEWAIT', 'failQp', 'sendDrep', 'startTimewait', 'reportDisconnectedByPeer'),
  REJECTED: row('TIMEWAIT', ...leftByPeer),
  CONNECT_ERROR: lost,
  UNREACHABLE: lost,
  DEVICE_REMOVAL: row('IDLE', 'failQp', 'destroyId', 'reportDisconnected'),
  ESTABLISHED: row('ESTABLISHED'),
  ADDR_CHANGE: row('ESTABLISHED'),
  commEst: row('ESTABLISHED'),
  disconnect: row('DREQ_SENT', 'failQp', 'sendDreq'),
  abandon: row('DREQ_SENT', 'mute', 'failQp', 'sendDreq'),
  close: row('IDLE', 'mute', 'failQp', 'sendDreq', 'destroyId'),
} as const;

const left = row('TIMEWAIT', 'sendDrep', 'startTimewait', 'reportDisconnected');
const leftAlready = row('TIMEWAIT', 'startTimewait', 'reportDisconnected');
const over = row('IDLE', 'stopTimers', 'destroyId', 'reportTimewaitExit');

const ENDING: CmTable = {
  DREQ_SENT: {
    DISCONNECTED: left,
    REJECTED: leftAlready,
    callFailed: leftAlready,
    TIMEWAIT_EXIT: row('IDLE', 'destroyId', 'reportDisconnected', 'reportTimewaitExit'),
    DEVICE_REMOVAL: row('IDLE', 'destroyId', 'reportDisconnected'),
    CONNECT_ERROR: row('DREQ_SENT'),
    UNREACHABLE: row('DREQ_SENT'),
    ESTABLISHED: row('DREQ_SENT'),
    ADDR_CHANGE: row('DREQ_SENT'),
    commEst: row('DREQ_SENT'),
    disconnect: row('DREQ_SENT'),
    abandon: row('DREQ_SENT', 'mute'),
    close: row('IDLE', 'mute', 'destroyId'),
  },
  TIMEWAIT: {
    TIMEWAIT_EXIT: over,
    timewaitOver: over,
    DEVICE_REMOVAL: over,
    DISCONNECTED: row('TIMEWAIT'),
    REJECTED: row('TIMEWAIT'),
    CONNECT_ERROR: row('TIMEWAIT'),
    UNREACHABLE: row('TIMEWAIT'),
    ESTABLISHED: row('TIMEWAIT'),
    ADDR_CHANGE: row('TIMEWAIT'),
    commEst: row('TIMEWAIT'),
    disconnect: row('TIMEWAIT'),
    abandon: row('TIMEWAIT', 'mute'),
    close: dropped,
  },
};

export const ACTIVE_TABLE: CmTable = {
  IDLE: { connect: row('ADDR_QUERY', 'startDeadline') },
  ADDR_QUERY: {
    ...connecting('ADDR_QUERY'),
    ADDR_RESOLVED: row('ROUTE_QUERY', 'resolveRoute'),
  },
  ROUTE_QUERY: {
    ...connecting('ROUTE_QUERY'),
    ROUTE_RESOLVED: row('REQ_SENT', 'sendReq'),
  },
  REQ_SENT: {
    ...connecting('REQ_SENT'),
    CONNECT_RESPONSE: row('REP_RCVD', 'raiseQp'),
    REJECTED: row('IDLE', 'stopTimers', 'destroyId', 'reportRejected'),
    // iWARP: the kernel has moved the queue pair.
    ESTABLISHED: row('ESTABLISHED', 'stopTimers', 'reportEstablished'),
  },
  // The queue pair follows within the same call.
  REP_RCVD: {
    qpReady: row('ESTABLISHED', 'stopTimers', 'reportEstablished'),
    qpFailed: row('IDLE', 'stopTimers', 'failQp', 'destroyId', 'reportUnreachable'),
  },
  ESTABLISHED,
  ...ENDING,
};

const handshakeFailed = row('IDLE', 'failQp', 'destroyId', 'reportAcceptFailed');
const quit = row('IDLE', 'mute', 'failQp', 'destroyId');

export const PASSIVE_TABLE: CmTable = {
  REQ_RCVD: {
    accept: row('REP_SENT'),
    close: row('IDLE', 'destroyId'),
  },
  REP_SENT: {
    ESTABLISHED: row('ESTABLISHED', 'startQp'),
    commEst: row('ESTABLISHED', 'notify', 'startQp'),
    REJECTED: handshakeFailed,
    UNREACHABLE: handshakeFailed,
    CONNECT_ERROR: handshakeFailed,
    DEVICE_REMOVAL: handshakeFailed,
    DISCONNECTED: row(
      'TIMEWAIT',
      'failQp',
      'sendDrep',
      'startTimewait',
      'reportDisconnectedByPeer',
    ),
    ADDR_CHANGE: row('REP_SENT'),
    disconnect: row('TIMEWAIT', 'failQp', 'destroyId', 'startTimewait', 'reportDisconnected'),
    abandon: quit,
    close: quit,
  },
  ESTABLISHED: {
    ...ESTABLISHED,
    qpReady: row('ESTABLISHED', 'reportEstablished'),
    qpFailed: row('DREQ_SENT', 'failQp', 'reportAcceptFailed', 'sendDreq'),
  },
  ...ENDING,
};
