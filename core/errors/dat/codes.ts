/**
 * DAT return types and subtypes: the one table of them (dat_error.h). A numeric return code is
 * class (bits 30-31) | type (bits 16-29) | subtype (bits 0-15).
 */

/** Class bits of a return code. */
export const DatClass = { SUCCESS: 0, WARNING: 0x40000000, ERROR: 0x80000000 } as const;

/** Return types: their number (bits 16 to 29 of the code) and their meaning. */
export const DAT_TYPES = {
  DAT_ABORT: [1, 'the operation was ended by a close, free or signal'],
  DAT_CONN_QUAL_IN_USE: [2, 'the connection qualifier is in use'],
  DAT_INSUFFICIENT_RESOURCES: [3, 'out of a resource'],
  DAT_INTERNAL_ERROR: [4, 'the provider failed'],
  DAT_INVALID_HANDLE: [5, 'the handle is foreign, freed, or of another kind'],
  DAT_INVALID_PARAMETER: [6, 'a parameter has a wrong type or value'],
  DAT_INVALID_STATE: [7, 'the object is in a state that does not allow this'],
  DAT_LENGTH_ERROR: [8, 'a length is outside of what is allowed'],
  DAT_MODEL_NOT_SUPPORTED: [9, 'the provider does not support this model'],
  DAT_PROVIDER_NOT_FOUND: [10, 'no such provider'],
  DAT_PRIVILEGES_VIOLATION: [11, 'the memory privileges do not allow this'],
  DAT_PROTECTION_VIOLATION: [12, 'the protection zones or keys do not match'],
  DAT_QUEUE_EMPTY: [13, 'the queue is empty'],
  DAT_QUEUE_FULL: [14, 'the queue is full'],
  DAT_TIMEOUT_EXPIRED: [15, 'the time is up'],
  DAT_PROVIDER_ALREADY_REGISTERED: [16, 'a provider of that name is registered'],
  DAT_PROVIDER_IN_USE: [17, 'the provider has open interface adapters'],
  DAT_INVALID_ADDRESS: [18, 'the address cannot be used'],
  DAT_INTERRUPTED_CALL: [19, 'the call was interrupted'],
  DAT_CONN_QUAL_UNAVAILABLE: [20, 'no connection qualifier is left'],
  DAT_RESERVED_LMR: [21, 'the reserved region cannot be used here'],
  DAT_PORT_IN_USE: [22, 'the port is in use'],
  DAT_COMM_NOT_SUPPORTED: [23, 'the communicator is not supported'],
  DAT_EXTENSION_BASE: [0x1000, 'an extension failed'],
  DAT_NOT_IMPLEMENTED: [0x3fff, 'not implemented'],
} as const satisfies Record<string, readonly [number, string]>;

/** Subtypes: their number (bits 0 to 15 of the code) and their meaning. */
export const DAT_SUBTYPES = {
  NO_SUBTYPE: [0, ''],
  SUB_INTERRUPTED: [1, 'interrupted'],
  RESOURCE_MEMORY: [2, 'memory'],
  RESOURCE_DEVICE: [3, 'the device'],
  RESOURCE_TEP: [4, 'endpoints'],
  RESOURCE_TEVD: [5, 'event dispatchers'],
  RESOURCE_PROTECTION_DOMAIN: [6, 'protection domains'],
  RESOURCE_MEMORY_REGION: [7, 'memory regions'],
  RESOURCE_ERROR_HANDLER: [8, 'error handlers'],
  RESOURCE_CREDITS: [9, 'credits'],
  RESOURCE_SRQ: [10, 'shared receive queues'],
  INVALID_HANDLE_IA: [11, 'interface adapter'],
  INVALID_HANDLE_EP: [12, 'endpoint'],
  INVALID_HANDLE_LMR: [13, 'local memory region'],
  INVALID_HANDLE_RMR: [14, 'remote memory region'],
  INVALID_HANDLE_PZ: [15, 'protection zone'],
  INVALID_HANDLE_PSP: [16, 'public service point'],
  INVALID_HANDLE_RSP: [17, 'reserved service point'],
  INVALID_HANDLE_CR: [18, 'connection request'],
  INVALID_HANDLE_CNO: [19, 'consumer notification object'],
  INVALID_HANDLE_EVD_CR: [20, 'event dispatcher for connection requests'],
  INVALID_HANDLE_EVD_REQUEST: [21, 'event dispatcher for requests'],
  INVALID_HANDLE_EVD_RECV: [22, 'event dispatcher for receives'],
  INVALID_HANDLE_EVD_CONN: [23, 'event dispatcher for connections'],
  INVALID_HANDLE_EVD_ASYNC: [24, 'event dispatcher for asynchronous errors'],
  INVALID_HANDLE_SRQ: [25, 'shared receive queue'],
  INVALID_HANDLE_CSP: [26, 'common service point'],
  INVALID_HANDLE1: [27, 'handle in parameter 1'],
  INVALID_HANDLE2: [28, 'handle in parameter 2'],
  INVALID_HANDLE3: [29, 'handle in parameter 3'],
  INVALID_HANDLE4: [30, 'handle in parameter 4'],
  INVALID_HANDLE5: [31, 'handle in parameter 5'],
  INVALID_HANDLE6: [32, 'handle in parameter 6'],
  INVALID_HANDLE7: [33, 'handle in parameter 7'],
  INVALID_HANDLE8: [34, 'handle in parameter 8'],
  INVALID_HANDLE9: [35, 'handle in parameter 9'],
  INVALID_HANDLE10: [36, 'handle in parameter 10'],
  INVALID_ARG1: [37, 'parameter 1'],
  INVALID_ARG2: [38, 'parameter 2'],
  INVALID_ARG3: [39, 'parameter 3'],
  INVALID_ARG4: [40, 'parameter 4'],
  INVALID_ARG5: [41, 'parameter 5'],
  INVALID_ARG6: [42, 'parameter 6'],
  INVALID_ARG7: [43, 'parameter 7'],
  INVALID_ARG8: [44, 'parameter 8'],
  INVALID_ARG9: [45, 'parameter 9'],
  INVALID_ARG10: [46, 'parameter 10'],
  INVALID_STATE_EP_UNCONNECTED: [47, 'the endpoint is unconnected'],
  INVALID_STATE_EP_ACTCONNPENDING: [48, 'the endpoint is connecting'],
  INVALID_STATE_EP_PASSCONNPENDING: [49, 'the endpoint has a request to answer'],
  INVALID_STATE_EP_TENTCONNPENDING: [50, 'the endpoint is tentative'],
  INVALID_STATE_EP_CONNECTED: [51, 'the endpoint is connected'],
  INVALID_STATE_EP_DISCONNECTED: [52, 'the endpoint is disconnected'],
  INVALID_STATE_EP_RESERVED: [53, 'the endpoint is reserved'],
  INVALID_STATE_EP_COMPLPENDING: [54, 'the endpoint waits for the handshake to complete'],
  INVALID_STATE_EP_DISCPENDING: [55, 'the endpoint is disconnecting'],
  INVALID_STATE_EP_PROVIDERCONTROL: [56, 'the endpoint is in the hands of the provider'],
  INVALID_STATE_EP_NOTREADY: [57, 'the endpoint is not ready'],
  INVALID_STATE_EP_RECV_WATERMARK: [58, 'receive watermark of the endpoint'],
  INVALID_STATE_EP_PZ: [59, 'protection zone of the endpoint'],
  INVALID_STATE_EP_EVD_REQUEST: [60, 'request event dispatcher of the endpoint'],
  INVALID_STATE_EP_EVD_RECV: [61, 'receive event dispatcher of the endpoint'],
  INVALID_STATE_EP_EVD_CONNECT: [62, 'connect event dispatcher of the endpoint'],
  INVALID_STATE_EP_UNCONFIGURED: [63, 'the endpoint is not configured'],
  INVALID_STATE_EP_UNCONFRESERVED: [64, 'the endpoint is reserved and not configured'],
  INVALID_STATE_EP_UNCONFPASSIVE: [65, 'the endpoint is passive and not configured'],
  INVALID_STATE_EP_UNCONFTENTATIVE: [66, 'the endpoint is tentative and not configured'],
  INVALID_STATE_CNO_IN_USE: [67, 'the notification object is in use'],
  INVALID_STATE_CNO_DEAD: [68, 'the notification object is dead'],
  INVALID_STATE_EVD_OPEN: [69, 'the event dispatcher is open'],
  INVALID_STATE_EVD_ENABLED: [70, 'the event dispatcher is enabled'],
  INVALID_STATE_EVD_DISABLED: [71, 'the event dispatcher is disabled'],
  INVALID_STATE_EVD_WAITABLE: [72, 'the event dispatcher is waitable'],
  INVALID_STATE_EVD_UNWAITABLE: [73, 'the event dispatcher is unwaitable'],
  INVALID_STATE_EVD_IN_USE: [74, 'the event dispatcher is in use'],
  INVALID_STATE_EVD_CONFIG_NOTIFY: [75, 'the event dispatcher notifies'],
  INVALID_STATE_EVD_CONFIG_SOLICITED: [76, 'the event dispatcher notifies of solicited events'],
  INVALID_STATE_EVD_CONFIG_THRESHOLD: [77, 'the event dispatcher counts to a threshold'],
  INVALID_STATE_EVD_WAITER: [78, 'the event dispatcher has a waiter'],
  INVALID_STATE_EVD_ASYNC: [79, 'the event dispatcher is for asynchronous errors'],
  INVALID_STATE_IA_IN_USE: [80, 'the interface adapter is in use'],
  INVALID_STATE_LMR_IN_USE: [81, 'the memory region is in use'],
  INVALID_STATE_LMR_FREE: [82, 'the memory region is free'],
  INVALID_STATE_PZ_IN_USE: [83, 'the protection zone is in use'],
  INVALID_STATE_PZ_FREE: [84, 'the protection zone is free'],
  INVALID_STATE_SRQ_OPERATIONAL: [85, 'the shared receive queue is operational'],
  INVALID_STATE_SRQ_ERROR: [86, 'the shared receive queue is in error'],
  INVALID_STATE_SRQ_IN_USE: [87, 'the shared receive queue is in use'],
  INVALID_STATE_SRQ_SHUTDOWN: [88, 'the shared receive queue is shut down'],
  PRIVILEGES_READ: [89, 'local read'],
  PRIVILEGES_WRITE: [90, 'local write'],
  PRIVILEGES_RDMA_READ: [91, 'remote read'],
  PRIVILEGES_RDMA_WRITE: [92, 'remote write'],
  PROTECTION_READ: [93, 'local read'],
  PROTECTION_WRITE: [94, 'local write'],
  PROTECTION_RDMA_READ: [95, 'remote read'],
  PROTECTION_RDMA_WRITE: [96, 'remote write'],
  INVALID_ADDRESS_UNSUPPORTED: [97, 'unsupported'],
  INVALID_ADDRESS_UNREACHABLE: [98, 'unreachable'],
  INVALID_ADDRESS_MALFORMED: [99, 'malformed'],
  NAME_NOT_REGISTERED: [100, 'the name is not registered'],
  MAJOR_NOT_FOUND: [101, 'no such major version'],
  MINOR_NOT_FOUND: [102, 'no such minor version'],
  THREAD_SAFETY_NOT_FOUND: [103, 'no such thread safety'],
} as const satisfies Record<string, readonly [number, string]>;

/** Type of `DatError.code`: `DAT_INVALID_STATE` and so on. */
export type DatType = keyof typeof DAT_TYPES;
/** A subtype without the prefix. */
export type DatSubtypeKey = Exclude<keyof typeof DAT_SUBTYPES, 'NO_SUBTYPE'>;
/** Type of `DatError.subtype`: `DAT_INVALID_STATE_EP_UNCONNECTED` and so on. */
export type DatSubtype = `DAT_${DatSubtypeKey}`;

/** The numeric return code of an error: class ERROR, type and subtype, as an unsigned number. */
export function returnCodeOf(type: DatType, subtype?: DatSubtype): number {
  return (DatClass.ERROR | (DAT_TYPES[type][0] << 16) | subtypeEntry(subtype)[0]) >>> 0;
}

/** The meaning of a type and a subtype in one line (dat_strerror). */
export function describeCode(type: DatType, subtype?: DatSubtype): string {
  const detail = subtypeEntry(subtype)[1];
  return detail === '' ? DAT_TYPES[type][1] : `${DAT_TYPES[type][1]}: ${detail}`;
}

/**
 * Names of a numeric return code (dat_strerror). The class bit may be missing, as it often is in
 * dapl.
 * @returns undefined when no error has that number
 */
export function decodeReturnCode(
  returnCode: number,
): { readonly type: DatType; readonly subtype?: DatSubtype } | undefined {
  const typeNumber = (returnCode >>> 16) & 0x3fff;
  const subtypeNumber = returnCode & 0xffff;
  const type = keyByNumber(DAT_TYPES, typeNumber) as DatType | undefined;
  const subtype = keyByNumber(DAT_SUBTYPES, subtypeNumber);
  if (type === undefined || subtype === undefined) return undefined;
  return subtypeNumber === 0 ? { type } : { type, subtype: `DAT_${subtype}` as DatSubtype };
}

function subtypeEntry(subtype: DatSubtype | undefined): readonly [number, string] {
  const key = (subtype?.slice(4) ?? 'NO_SUBTYPE') as keyof typeof DAT_SUBTYPES;
  return DAT_SUBTYPES[key];
}

function keyByNumber(
  table: Readonly<Record<string, readonly [number, string]>>,
  value: number,
): string | undefined {
  return Object.keys(table).find((key) => table[key]?.[0] === value);
}
