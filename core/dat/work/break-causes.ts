/** Causes of a connection's end, for its last event: tables. */
import { CONNECTION_CAUSES, type ConnectionCause } from '../../evd/index.js';
import { AsyncEventType, WcStatus, WrOpcode } from '../../spi/index.js';
import { breakReasonOf } from '../common/async-events.js';

/** The cause of a connection's end. */
export interface BreakReason {
  readonly cause: ConnectionCause;
  /** One sentence for people. */
  readonly detail: string;
}

/** @param more details of this case, for the sentence of its cause */
export function breakReason(cause: ConnectionCause, more = ''): BreakReason {
  const sentence = CONNECTION_CAUSES[cause];
  return { cause, detail: more === '' ? sentence : `${sentence}: ${more}` };
}

interface Row {
  /** Cause when a request failed. */
  readonly request: ConnectionCause;
  /** Cause when a receive failed. */
  readonly receive: ConnectionCause;
}

const both = (cause: ConnectionCause): Row => ({ request: cause, receive: cause });

/** By work completion status (IBTA 11.6.2); SUCCESS and flushed ones break nothing. */
const BY_STATUS: Readonly<Record<number, Row>> = {
  [WcStatus.LOC_LEN_ERR]: { request: 'LOCAL_REQUEST', receive: 'LOCAL_LENGTH' },
  [WcStatus.LOC_QP_OP_ERR]: both('LOCAL_REQUEST'),
  [WcStatus.LOC_PROT_ERR]: both('LOCAL_PROTECTION'),
  [WcStatus.MW_BIND_ERR]: both('LOCAL_REQUEST'),
  [WcStatus.BAD_RESP_ERR]: both('PEER_PROTOCOL'),
  [WcStatus.LOC_ACCESS_ERR]: { request: 'LOCAL_PROTECTION', receive: 'LOCAL_ACCESS' },
  [WcStatus.REM_INV_REQ_ERR]: { request: 'REMOTE_REQUEST', receive: 'PEER_PROTOCOL' },
  [WcStatus.REM_ACCESS_ERR]: { request: 'REMOTE_ACCESS', receive: 'LOCAL_ACCESS' },
  [WcStatus.REM_OP_ERR]: both('REMOTE_OPERATION'),
  [WcStatus.RETRY_EXC_ERR]: both('PEER_GONE'),
  [WcStatus.RESP_TIMEOUT_ERR]: both('PEER_GONE'),
  [WcStatus.RNR_RETRY_EXC_ERR]: both('RECEIVER_NOT_READY'),
  [WcStatus.REM_INV_RD_REQ_ERR]: both('REMOTE_REQUEST'),
  [WcStatus.REM_ABORT_ERR]: both('REMOTE_OPERATION'),
};

/** An "invalid request" (IBTA 9.7.5.2.5) on these is most often a receive that is too small. */
const SENDS: readonly number[] = [WrOpcode.SEND, WrOpcode.SEND_WITH_IMM, WrOpcode.SEND_WITH_INV];

/** A missing queue and a short receive have the same syndrome. */
const XRC_REFUSAL =
  'it has no such XRC queue, the receive of that queue was too small, or a packet was malformed';

/**
 * The cause when a work completion breaks the connection.
 * @param wrOpcode the posted operation; undefined for a receive
 * @param namesQueue the request names a shared receive queue of the peer (XRC)
 */
export function causeOfCompletion(
  status: number,
  wrOpcode: number | undefined,
  namesQueue = false,
): BreakReason {
  const row = BY_STATUS[status] ?? both('DEVICE');
  if (wrOpcode === undefined) return breakReason(row.receive);
  const isRefused = status === WcStatus.REM_INV_REQ_ERR && SENDS.includes(wrOpcode);
  if (!isRefused) return breakReason(row.request);
  return namesQueue ? breakReason('REMOTE_REQUEST', XRC_REFUSAL) : breakReason('REMOTE_LENGTH');
}

/** As above for a keep-alive, which is no request of the consumer's. */
export function unansweredProbe(status: number): BreakReason {
  const { cause } = causeOfCompletion(status, WrOpcode.RDMA_WRITE);
  return cause === 'PEER_GONE'
    ? { cause, detail: 'the peer has not answered a keep-alive' }
    : breakReason(cause, 'a keep-alive failed');
}

const BY_EVENT: Partial<Readonly<Record<AsyncEventType, ConnectionCause>>> = {
  [AsyncEventType.QP_REQ_ERR]: 'PEER_PROTOCOL',
  [AsyncEventType.QP_ACCESS_ERR]: 'LOCAL_ACCESS',
};

/**
 * The cause when an event of the queue pair breaks the connection; undefined if it does not.
 * @param trouble the network's report about the peer, if that ended the queue pair
 */
export function causeOfEvent(event: AsyncEventType, trouble?: string): BreakReason | undefined {
  const detail = breakReasonOf(event);
  if (detail === undefined) return undefined;
  if (event === AsyncEventType.QP_FATAL && trouble !== undefined) return breakReason('PEER_GONE');
  return { cause: BY_EVENT[event] ?? 'DEVICE', detail };
}
