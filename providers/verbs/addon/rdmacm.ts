/**
 * The calls of librdmacm as the addon offers them (native/rdmacm_*.cc). Identifiers and channels
 * are numbers; 0 or a number is success, a negative errno failure. `load('rdmacm')` comes first.
 */

export interface CmNative {
  cmOpenChannel(record: Uint8Array, onEvent: () => void): number;
  cmWatchChannel(channel: number, on: number): number;
  cmCloseChannel(channel: number): number;
  cmCreateId(channel: number, portSpace: number): number;
  cmDestroyId(id: number): number;
  cmMigrateId(id: number, channel: number): number;
  cmBindAddress(id: number, address: Uint8Array): number;
  cmResolveAddress(
    id: number,
    source: Uint8Array | undefined,
    destination: Uint8Array,
    timeoutMs: number,
  ): number;
  cmResolveRoute(id: number, timeoutMs: number): number;
  cmSetOption(id: number, level: number, name: number, value: Uint8Array): number;
  cmConnect(id: number, words: Uint32Array, privateData: Uint8Array): number;
  cmEstablish(id: number): number;
  cmListen(id: number, backlog: number): number;
  cmAccept(id: number, words: Uint32Array, privateData: Uint8Array): number;
  cmReject(id: number, privateData: Uint8Array): number;
  cmNotify(id: number, event: number): number;
  cmDisconnect(id: number): number;
  cmQueuePairAttributes(id: number, state: number, words: Uint32Array): number;
  cmDescribeId(id: number, out: Uint8Array): number;
  cmDeviceName(id: number): string | undefined;
}

/** Events of rdma_cm (rdma_get_cm_event(3)). */
export const CmEventType = {
  ADDR_RESOLVED: 0,
  ADDR_ERROR: 1,
  ROUTE_RESOLVED: 2,
  ROUTE_ERROR: 3,
  CONNECT_REQUEST: 4,
  CONNECT_RESPONSE: 5,
  CONNECT_ERROR: 6,
  UNREACHABLE: 7,
  REJECTED: 8,
  ESTABLISHED: 9,
  DISCONNECTED: 10,
  DEVICE_REMOVAL: 11,
  MULTICAST_JOIN: 12,
  MULTICAST_ERROR: 13,
  ADDR_CHANGE: 14,
  TIMEWAIT_EXIT: 15,
  /** Ours: reading the channel has failed. */
  CHANNEL_FAILED: 0xff,
} as const;
export type CmEventType = (typeof CmEventType)[keyof typeof CmEventType];

/** Words of an event record, as far as they are read; the private data is at byte 64. */
export const EVENT_WORD = {
  TYPE: 0,
  ID: 1,
  STATUS: 3,
  IS_DATAGRAM: 4,
  RESPONDER_RESOURCES: 5,
  INITIATOR_DEPTH: 6,
  RETRY_COUNT: 7,
  RNR_RETRY_COUNT: 8,
  QPN: 9,
  QKEY: 10,
  PRIVATE_DATA_LENGTH: 11,
} as const;
export const EVENT_PRIVATE_DATA = 64;
export const EVENT_RECORD_BYTES = EVENT_PRIVATE_DATA + 256;

/**
 * Words of the result of rdma_init_qp_attr, as far as they are read; the peer's GID is at word 24.
 */
export const ATTRIBUTE_WORD = {
  MASK: 0,
  PATH_MTU: 1,
  DESTINATION_QPN: 2,
  RECEIVE_PSN: 3,
  SEND_PSN: 4,
  MAX_DEST_RD_ATOMIC: 5,
  MAX_RD_ATOMIC: 6,
  TIMEOUT: 7,
  RETRY_COUNT: 8,
  RNR_RETRY_COUNT: 9,
  SOURCE_GID_INDEX: 12,
  HOP_LIMIT: 13,
  TRAFFIC_CLASS: 14,
  FLOW_LABEL: 15,
  DESTINATION_LID: 16,
  SERVICE_LEVEL: 17,
  SOURCE_PATH_BITS: 18,
} as const;
export const ATTRIBUTE_GID_WORD = 24;
export const ATTRIBUTE_WORDS = 28;

/** Options of rdma_set_option(3). */
export const CM_OPTION = { LEVEL_ID: 0, LEVEL_IB: 1, ID_ACK_TIMEOUT: 3, IB_PATH: 1 } as const;
