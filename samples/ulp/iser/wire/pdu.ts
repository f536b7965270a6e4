/**
 * A whole PDU: basic header, additional headers, data segment (RFC 7143, 11.2). Digests and padding
 * belong to the byte stream (`pdu-stream.ts`).
 */
import { readAhs, type AdditionalHeaders } from './ahs.js';
import type { ViewOf } from './field-table.js';
import * as initiator from './initiator-pdus.js';
import { INITIATOR_OPCODE as I, TARGET_OPCODE as T } from './opcode.js';
import * as target from './target-pdus.js';
import { WireError } from './wire-error.js';

const { BHS_BYTES } = initiator;
export { BHS_BYTES };

/** The formats of an initiator's PDUs. */
const FROM_INITIATOR = {
  nopOut: initiator.nopOut,
  scsiCommand: initiator.scsiCommand,
  taskManagementRequest: initiator.taskManagementRequest,
  loginRequest: initiator.loginRequest,
  textRequest: initiator.textRequest,
  dataOut: initiator.dataOut,
  logoutRequest: initiator.logoutRequest,
  snackRequest: initiator.snackRequest,
} as const;

/** The formats of a target's PDUs. */
const FROM_TARGET = {
  nopIn: target.nopIn,
  scsiResponse: target.scsiResponse,
  taskManagementResponse: target.taskManagementResponse,
  loginResponse: target.loginResponse,
  textResponse: target.textResponse,
  dataIn: target.dataIn,
  logoutResponse: target.logoutResponse,
  r2t: target.r2t,
  asyncMessage: target.asyncMessage,
  reject: target.reject,
} as const;

type Formats = typeof FROM_INITIATOR | typeof FROM_TARGET;
type PduOf<F extends Formats> = {
  [K in keyof F]: {
    /** The kind of PDU: the discriminant of the union. */
    readonly type: K;
    readonly header: ViewOf<F[K]>;
    readonly ahs: AdditionalHeaders;
    /** The data segment, a part of the bytes that the PDU was read from. */
    readonly data: Uint8Array;
  };
}[keyof F];

/** PDUs that a target receives. */
export type InitiatorPdu = PduOf<typeof FROM_INITIATOR>;
/** PDUs that an initiator receives. */
export type TargetPdu = PduOf<typeof FROM_TARGET>;

const INITIATOR_TYPES: ReadonlyMap<number, keyof typeof FROM_INITIATOR> = new Map([
  [I.NOP_OUT, 'nopOut'],
  [I.SCSI_COMMAND, 'scsiCommand'],
  [I.TASK_MANAGEMENT_REQUEST, 'taskManagementRequest'],
  [I.LOGIN_REQUEST, 'loginRequest'],
  [I.TEXT_REQUEST, 'textRequest'],
  [I.DATA_OUT, 'dataOut'],
  [I.LOGOUT_REQUEST, 'logoutRequest'],
  [I.SNACK_REQUEST, 'snackRequest'],
] as const);

const TARGET_TYPES: ReadonlyMap<number, keyof typeof FROM_TARGET> = new Map([
  [T.NOP_IN, 'nopIn'],
  [T.SCSI_RESPONSE, 'scsiResponse'],
  [T.TASK_MANAGEMENT_RESPONSE, 'taskManagementResponse'],
  [T.LOGIN_RESPONSE, 'loginResponse'],
  [T.TEXT_RESPONSE, 'textResponse'],
  [T.DATA_IN, 'dataIn'],
  [T.LOGOUT_RESPONSE, 'logoutResponse'],
  [T.R2T, 'r2t'],
  [T.ASYNC_MESSAGE, 'asyncMessage'],
  [T.REJECT, 'reject'],
] as const);

/**
 * A PDU that an initiator has sent.
 * @param bytes header, additional headers and data segment; padding behind them is ignored
 * @throws WireError for a PDU that is cut off, or an opcode that no initiator sends
 */
export function readInitiatorPdu(bytes: Uint8Array): InitiatorPdu {
  return readPdu(bytes, INITIATOR_TYPES, FROM_INITIATOR, 'an initiator') as InitiatorPdu;
}

/**
 * A PDU that a target has sent.
 * @param bytes header, additional headers and data segment; padding behind them is ignored
 * @throws WireError for a PDU that is cut off, or an opcode that no target sends
 */
export function readTargetPdu(bytes: Uint8Array): TargetPdu {
  return readPdu(bytes, TARGET_TYPES, FROM_TARGET, 'a target') as TargetPdu;
}

/** The parts of a PDU before its opcode is known. */
function readPdu<K extends string>(
  bytes: Uint8Array,
  types: ReadonlyMap<number, K>,
  formats: Readonly<Record<K, { view(bytes: Uint8Array): unknown }>>,
  sender: string,
): { type: K; header: unknown; ahs: AdditionalHeaders; data: Uint8Array } {
  if (bytes.length < BHS_BYTES) {
    throw new WireError('length', 'PDU length in bytes', bytes.length, `at least ${BHS_BYTES}`);
  }
  const { ahsBytes, dataBytes } = pduLengths(bytes);
  const dataAt = BHS_BYTES + ahsBytes;
  if (dataAt + dataBytes > bytes.length) {
    throw new WireError(
      'length',
      'PDU length in bytes',
      bytes.length,
      `at least ${dataAt + dataBytes}, as TotalAHSLength and DataSegmentLength say`,
    );
  }
  const opcode = bytes[0]! & 0x3f;
  const type = types.get(opcode);
  if (type === undefined) {
    throw new WireError('opcode', 'opcode', `0x${opcode.toString(16)}`, `one of ${sender}`);
  }
  return {
    type,
    header: formats[type].view(bytes),
    ahs: readAhs(bytes.subarray(BHS_BYTES, dataAt)),
    data: bytes.subarray(dataAt, dataAt + dataBytes),
  };
}

/**
 * Lengths that a header declares, in bytes and without padding.
 * @param bytes at least 8 bytes from the start of the header
 */
export function pduLengths(
  bytes: Uint8Array,
  at = 0,
): { readonly ahsBytes: number; readonly dataBytes: number } {
  return {
    ahsBytes: bytes[at + 4]! * 4,
    dataBytes: (bytes[at + 5]! << 16) | (bytes[at + 6]! << 8) | bytes[at + 7]!,
  };
}

/**
 * True if a session gives this PDU a CmdSN of its own. An immediate PDU carries the next one
 * without consuming it; Data-Out and SNACK have none (RFC 7143, 4.2.2.1).
 */
export function takesCmdSn(pdu: InitiatorPdu): boolean {
  return pdu.type !== 'dataOut' && pdu.type !== 'snackRequest' && !pdu.header.immediate;
}

// Serial numbers of 32 bits, which wrap (RFC 1982; RFC 7143, 4.2.2.1).

/** `number + by`; `by` may be negative. */
export function serialAdd(number: number, by: number): number {
  return (number + by) >>> 0;
}

/** Distance of `number` ahead of `reference`, -2^31 to 2^31 - 1. */
export function serialDistance(number: number, reference: number): number {
  return (number - reference) | 0;
}

/** True if `number` comes before `reference`. */
export function serialBefore(number: number, reference: number): boolean {
  return serialDistance(number, reference) < 0;
}
