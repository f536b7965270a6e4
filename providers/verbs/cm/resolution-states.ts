/**
 * Asking for a datagram service (SIDR) over librdmacm as a table: the messages and their retries
 * are the kernel's, the order of its calls is ours. What has no row changes nothing.
 */
import { row, type StateTable } from '../../../plugins/cm/provider.js';
import type { CmEventType } from '../addon/rdmacm.js';

export type ResolutionState = 'ADDR_QUERY' | 'ROUTE_QUERY' | 'SIDR_REQ_SENT' | 'IDLE';

export type ResolutionInput =
  /** Events of rdma_cm. */
  | keyof typeof CmEventType
  /** UNREACHABLE with the status of a SIDR_REP: the peer has answered. */
  | 'refused'
  /** A call of librdmacm has failed. */
  | 'callFailed'
  /** The consumer's time limit. */
  | 'deadline'
  /** The consumer cancels, or the module closes. */
  | 'close';

export type ResolutionAction =
  /** rdma_resolve_route, rdma_connect; they may raise callFailed. */
  | 'resolveRoute'
  | 'sendReq'
  /** Stops the time limit, and gives the identifier back. */
  | 'letGo'
  | 'reportAnswer'
  | 'reportRefusal'
  | 'reportUnreachable'
  | 'reportTimedOut';

const failed = row('IDLE', 'letGo', 'reportUnreachable');

const ASKING = {
  ADDR_ERROR: failed,
  ROUTE_ERROR: failed,
  CONNECT_ERROR: failed,
  UNREACHABLE: failed,
  REJECTED: failed,
  DISCONNECTED: failed,
  DEVICE_REMOVAL: failed,
  TIMEWAIT_EXIT: failed,
  callFailed: failed,
  deadline: row('IDLE', 'letGo', 'reportTimedOut'),
  close: row('IDLE', 'letGo'),
} as const;

export const RESOLUTION_TABLE: StateTable<ResolutionState, ResolutionInput, ResolutionAction> = {
  ADDR_QUERY: { ...ASKING, ADDR_RESOLVED: row('ROUTE_QUERY', 'resolveRoute') },
  ROUTE_QUERY: { ...ASKING, ROUTE_RESOLVED: row('SIDR_REQ_SENT', 'sendReq') },
  SIDR_REQ_SENT: {
    ...ASKING,
    ESTABLISHED: row('IDLE', 'letGo', 'reportAnswer'),
    refused: row('IDLE', 'letGo', 'reportRefusal'),
  },
};
