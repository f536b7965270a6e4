/** Opcodes, tags, reasons and statuses of iSCSI (RFC 7143, section 11). */

/** PDUs that an initiator sends. */
export const INITIATOR_OPCODE = {
  NOP_OUT: 0x00,
  SCSI_COMMAND: 0x01,
  TASK_MANAGEMENT_REQUEST: 0x02,
  LOGIN_REQUEST: 0x03,
  TEXT_REQUEST: 0x04,
  DATA_OUT: 0x05,
  LOGOUT_REQUEST: 0x06,
  SNACK_REQUEST: 0x10,
} as const;

/** PDUs that a target sends. */
export const TARGET_OPCODE = {
  NOP_IN: 0x20,
  SCSI_RESPONSE: 0x21,
  TASK_MANAGEMENT_RESPONSE: 0x22,
  LOGIN_RESPONSE: 0x23,
  TEXT_RESPONSE: 0x24,
  DATA_IN: 0x25,
  LOGOUT_RESPONSE: 0x26,
  R2T: 0x31,
  ASYNC_MESSAGE: 0x32,
  REJECT: 0x3f,
} as const;

/** A tag that names no task and no transfer (RFC 7143, 11.2.1.8 and 11.7.4). */
export const RESERVED_TAG = 0xffff_ffff;

/** Stages of login (RFC 7143, 11.12.3). 2 is reserved. */
export const LOGIN_STAGE = { SECURITY: 0, OPERATIONAL: 1, FULL_FEATURE: 3 } as const;

/** Task attributes, which order a command among others (RFC 7143, 11.3.1; SAM-5). */
export const TASK_ATTRIBUTE = {
  UNTAGGED: 0,
  SIMPLE: 1,
  ORDERED: 2,
  HEAD_OF_QUEUE: 3,
  ACA: 4,
} as const;

/** `response` of a SCSI Response (RFC 7143, 11.4.3). */
export const SCSI_RESPONSE_CODE = { COMPLETED: 0x00, TARGET_FAILURE: 0x01 } as const;

/** Statuses of a SCSI command (SAM-5 5.3.1). */
export const SCSI_STATUS = {
  GOOD: 0x00,
  CHECK_CONDITION: 0x02,
  CONDITION_MET: 0x04,
  BUSY: 0x08,
  RESERVATION_CONFLICT: 0x18,
  TASK_SET_FULL: 0x28,
  ACA_ACTIVE: 0x30,
  TASK_ABORTED: 0x40,
} as const;

/** Task management functions (RFC 7143, 11.5.1). */
export const TASK_FUNCTION = {
  ABORT_TASK: 1,
  ABORT_TASK_SET: 2,
  CLEAR_ACA: 3,
  CLEAR_TASK_SET: 4,
  LOGICAL_UNIT_RESET: 5,
  TARGET_WARM_RESET: 6,
  TARGET_COLD_RESET: 7,
  TASK_REASSIGN: 8,
} as const;

/** Answers to them (RFC 7143, 11.6.1). */
export const TASK_RESPONSE = {
  COMPLETE: 0,
  TASK_DOES_NOT_EXIST: 1,
  LUN_DOES_NOT_EXIST: 2,
  TASK_STILL_ALLEGIANT: 3,
  REASSIGN_NOT_SUPPORTED: 4,
  NOT_SUPPORTED: 5,
  NOT_AUTHORIZED: 6,
  REJECTED: 255,
} as const;

/** Reasons for a logout of a session or connection (RFC 7143, 11.14.1). */
export const LOGOUT_REASON = {
  CLOSE_SESSION: 0,
  CLOSE_CONNECTION: 1,
  REMOVE_FOR_RECOVERY: 2,
} as const;

/** Answers to it (RFC 7143, 11.15.1). */
export const LOGOUT_RESPONSE = {
  CLOSED: 0,
  CONNECTION_NOT_FOUND: 1,
  RECOVERY_NOT_SUPPORTED: 2,
  CLEANUP_FAILED: 3,
} as const;

/** Reasons for rejecting a PDU (RFC 7143, 11.17.1). */
export const REJECT_REASON = {
  DATA_DIGEST_ERROR: 0x02,
  SNACK_REJECT: 0x03,
  PROTOCOL_ERROR: 0x04,
  COMMAND_NOT_SUPPORTED: 0x05,
  IMMEDIATE_COMMAND_REJECT: 0x06,
  TASK_IN_PROGRESS: 0x07,
  INVALID_DATA_ACK: 0x08,
  INVALID_PDU_FIELD: 0x09,
  LONG_OPERATION_REJECT: 0x0a,
  WAITING_FOR_LOGOUT: 0x0c,
} as const;

/** Events that a target reports unasked (RFC 7143, 11.9.1). */
export const ASYNC_EVENT = {
  SCSI: 0,
  LOGOUT_REQUEST: 1,
  CONNECTION_DROP: 2,
  SESSION_DROP: 3,
  NEGOTIATION_REQUEST: 4,
  TASK_TERMINATION: 5,
} as const;

/** The name of a value in one of these tables, or the number in hex. */
export function nameOf(table: Readonly<Record<string, number>>, value: number): string {
  const entry = Object.entries(table).find(([, known]) => known === value);
  return entry ? entry[0] : `0x${value.toString(16)}`;
}

/** Statuses of a Login Response (RFC 7143, 11.13.5): class in the high byte, detail in the low. */
export const LOGIN_STATUS = {
  SUCCESS: 0x0000,
  TARGET_MOVED_TEMPORARILY: 0x0101,
  TARGET_MOVED_PERMANENTLY: 0x0102,
  INITIATOR_ERROR: 0x0200,
  AUTHENTICATION_FAILURE: 0x0201,
  AUTHORIZATION_FAILURE: 0x0202,
  NOT_FOUND: 0x0203,
  TARGET_REMOVED: 0x0204,
  UNSUPPORTED_VERSION: 0x0205,
  TOO_MANY_CONNECTIONS: 0x0206,
  MISSING_PARAMETER: 0x0207,
  CANNOT_INCLUDE_IN_SESSION: 0x0208,
  SESSION_TYPE_NOT_SUPPORTED: 0x0209,
  SESSION_DOES_NOT_EXIST: 0x020a,
  INVALID_DURING_LOGIN: 0x020b,
  TARGET_ERROR: 0x0300,
  SERVICE_UNAVAILABLE: 0x0301,
  OUT_OF_RESOURCES: 0x0302,
} as const;

/** Classes of those statuses. */
export const LOGIN_STATUS_CLASS = {
  SUCCESS: 0,
  REDIRECTION: 1,
  INITIATOR_ERROR: 2,
  TARGET_ERROR: 3,
} as const;
