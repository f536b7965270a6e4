/** REJ, reject (IBTA 12.6.7), and its reasons (IBTA table 108). */
import { cmCodec } from './cm-codec.js';
import { type MessageOf, padded, uint } from './field-table.js';

/** The message that a REJ answers; `other` if it answers none, as after a timeout. */
export const MESSAGE_REJECTED = { req: 0, rep: 1, other: 2 } as const;

/** Bytes of additional reject information. */
export const REJECT_INFO_LENGTH = 72;

export const rejCodec = cmCodec('REJ', {
  /** 0 when the rejecter has assigned none. */
  localCommId: uint(0, 0, 32),
  remoteCommId: uint(4, 0, 32),
  /** `MESSAGE_REJECTED`. */
  messageRejected: uint(8, 0, 2),
  /** Bytes of `additionalRejectInfo` that mean something, 0 to 72. */
  rejectInfoLength: uint(9, 0, 7, REJECT_INFO_LENGTH),
  /** `REJECT_REASON`. */
  reason: uint(10, 0, 16),
  /** 72 bytes. */
  additionalRejectInfo: padded(12, REJECT_INFO_LENGTH),
  /** 148 bytes. */
  privateData: padded(84, 148),
});
export type CmRej = MessageOf<typeof rejCodec>;

/** REJ reason codes (IBTA table 108). */
export const REJECT_REASON = {
  NO_QP_AVAILABLE: 1,
  NO_EEC_AVAILABLE: 2,
  NO_RESOURCES_AVAILABLE: 3,
  /** Additional information: the CA GUID of the sender. */
  TIMEOUT: 4,
  UNSUPPORTED_REQUEST: 5,
  INVALID_COMMUNICATION_ID: 6,
  INVALID_COMMUNICATION_INSTANCE: 7,
  INVALID_SERVICE_ID: 8,
  INVALID_TRANSPORT_SERVICE_TYPE: 9,
  STALE_CONNECTION: 10,
  RDC_DOES_NOT_EXIST: 11,
  /** Additional information: an acceptable GID. */
  PRIMARY_REMOTE_PORT_GID_REJECTED: 12,
  PRIMARY_REMOTE_PORT_LID_REJECTED: 13,
  INVALID_PRIMARY_SL: 14,
  INVALID_PRIMARY_TRAFFIC_CLASS: 15,
  INVALID_PRIMARY_HOP_LIMIT: 16,
  INVALID_PRIMARY_PACKET_RATE: 17,
  /** Additional information: an acceptable GID. */
  ALTERNATE_REMOTE_PORT_GID_REJECTED: 18,
  ALTERNATE_REMOTE_PORT_LID_REJECTED: 19,
  INVALID_ALTERNATE_SL: 20,
  INVALID_ALTERNATE_TRAFFIC_CLASS: 21,
  INVALID_ALTERNATE_HOP_LIMIT: 22,
  INVALID_ALTERNATE_PACKET_RATE: 23,
  /** Additional information: ClassPortInfo. */
  PORT_AND_CM_REDIRECTION: 24,
  /** Additional information: the GID to go to. */
  PORT_REDIRECTION: 25,
  /** Additional information: the largest acceptable MTU code. */
  INVALID_PATH_MTU: 26,
  INSUFFICIENT_RESPONDER_RESOURCES: 27,
  CONSUMER_REJECT: 28,
  RNR_RETRY_COUNT_REJECT: 29,
  DUPLICATE_LOCAL_COMMUNICATION_ID: 30,
  UNSUPPORTED_CLASS_VERSION: 31,
  INVALID_PRIMARY_FLOW_LABEL: 32,
  INVALID_ALTERNATE_FLOW_LABEL: 33,
  VENDOR_OPTION_NOT_SUPPORTED: 35,
} as const;

const NAMES = new Map<number, string>(
  Object.entries(REJECT_REASON).map(([name, code]) => [
    code,
    name.toLowerCase().replaceAll('_', ' '),
  ]),
);

/** A readable name: `invalid service id`, or `reason 34` for a code without a name. */
export function rejectReasonName(reason: number): string {
  return NAMES.get(reason) ?? `reason ${reason}`;
}
