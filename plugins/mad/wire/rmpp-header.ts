/** The RMPP header: 12 bytes after the MAD header, for transfers of many MADs (IBTA 13.6.2). */
import { checkInteger, outOfRange, type Refuse } from '../../../core/spi/checks/index.js';
import { MAD_BYTES } from '../../../core/spi/modules/mad.js';

export const RMPP_HEADER_OFFSET = 24;
export const RMPP_HEADER_LENGTH = 12;
/** Bytes of class header and data in one segment. */
export const RMPP_DATA_LENGTH = MAD_BYTES - RMPP_HEADER_OFFSET - RMPP_HEADER_LENGTH;
export const RMPP_VERSION = 1;

export const RMPP_TYPE = { NONE: 0, DATA: 1, ACK: 2, STOP: 3, ABORT: 4 } as const;

/** Bits of `flags`. A MAD without `ACTIVE` is not part of a transfer. */
export const RMPP_FLAG = { ACTIVE: 1, FIRST: 2, LAST: 4 } as const;

/** `responseTime` of a sender that states none. */
export const RMPP_NO_RESPONSE_TIME = 0x1f;

export const RMPP_STATUS = {
  NORMAL: 0,
  /** STOP only. */
  RESOURCES_EXHAUSTED: 1,
  /** ABORT: 118 to 127. */
  TOTAL_TIME_TOO_LONG: 118,
  INCONSISTENT_LAST_PAYLOAD_LENGTH: 119,
  INCONSISTENT_FIRST_SEGMENT_NUMBER: 120,
  BAD_TYPE: 121,
  NEW_WINDOW_LAST_TOO_SMALL: 122,
  SEGMENT_NUMBER_TOO_BIG: 123,
  ILLEGAL_STATUS: 124,
  UNSUPPORTED_VERSION: 125,
  TOO_MANY_RETRIES: 126,
  UNSPECIFIED: 127,
} as const;

export interface RmppHeader {
  readonly version: number;
  /** `RMPP_TYPE`. */
  readonly type: number;
  /** 5-bit time code, 4.096 us * 2^code. */
  readonly responseTime: number;
  /** `RMPP_FLAG` bits, 3 of them. */
  readonly flags: number;
  /** `RMPP_STATUS`. */
  readonly status: number;
  /** DATA: 1 to n. ACK: the last segment received in order. STOP, ABORT: 0. */
  readonly segmentNumber: number;
  /** DATA: payload length in bytes. ACK: the last segment the sender may send. Else 0. */
  readonly payloadLengthOrNewWindowLast: number;
}

const field = {
  version: 24,
  type: 25,
  responseTimeAndFlags: 26,
  status: 27,
  segmentNumber: 28,
  payloadLengthOrNewWindowLast: 32,
} as const;

/** Undefined unless the MAD has 256 bytes. The state machine checks version and type. */
export function parseRmppHeader(mad: Uint8Array): RmppHeader | undefined {
  if (mad.length !== MAD_BYTES) return undefined;
  const view = new DataView(mad.buffer, mad.byteOffset, MAD_BYTES);
  const timeAndFlags = view.getUint8(field.responseTimeAndFlags);
  return {
    version: view.getUint8(field.version),
    type: view.getUint8(field.type),
    responseTime: timeAndFlags >>> 3,
    flags: timeAndFlags & 7,
    status: view.getUint8(field.status),
    segmentNumber: view.getUint32(field.segmentNumber),
    payloadLengthOrNewWindowLast: view.getUint32(field.payloadLengthOrNewWindowLast),
  };
}

/** True if a MAD of a class with RMPP is part of a transfer; its length is not limited to 256. */
export function isRmppActive(mad: Uint8Array): boolean {
  return ((mad[field.responseTimeAndFlags] ?? 0) & RMPP_FLAG.ACTIVE) !== 0;
}

/**
 * Writes bytes 24 to 35 of a MAD.
 * @param mad 256 bytes
 * @throws RangeError naming field, value and limit; `mad` is not changed then
 */
export function emitRmppHeader(header: RmppHeader, mad: Uint8Array): void {
  if (mad.length !== MAD_BYTES) {
    throw new RangeError(`MAD has ${mad.length} bytes, must have ${MAD_BYTES}`);
  }
  checkField('version', header.version, 0xff);
  checkField('type', header.type, 0xff);
  checkField('responseTime', header.responseTime, 0x1f);
  checkField('flags', header.flags, 7);
  checkField('status', header.status, 0xff);
  checkField('segmentNumber', header.segmentNumber, 0xffffffff);
  const data2 = header.payloadLengthOrNewWindowLast;
  checkField('payloadLengthOrNewWindowLast', data2, 0xffffffff);
  const view = new DataView(mad.buffer, mad.byteOffset, MAD_BYTES);
  view.setUint8(field.version, header.version);
  view.setUint8(field.type, header.type);
  view.setUint8(field.responseTimeAndFlags, (header.responseTime << 3) | header.flags);
  view.setUint8(field.status, header.status);
  view.setUint32(field.segmentNumber, header.segmentNumber);
  view.setUint32(field.payloadLengthOrNewWindowLast, data2);
}

const badField: Refuse = (name, value, expected) => outOfRange(`RMPP ${name}`, value, expected);

function checkField(name: string, value: number, max: number): void {
  checkInteger(name, value, 0, max, badField);
}
