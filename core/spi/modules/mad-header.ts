/** The 24-byte header common to all management datagrams (IBTA 13.4.3), and its numbers. */
import { checkInteger, outOfRange, type Refuse } from '../checks/index.js';
import { MAD_BYTES } from './mad.js';

export const MAD_HEADER_LENGTH = 24;
/** Bytes after the header in a MAD without further headers. */
export const MAD_DATA_LENGTH = MAD_BYTES - MAD_HEADER_LENGTH;
export const MAD_BASE_VERSION = 1;

export const MadClass = {
  SUBN_LID: 0x01,
  SUBN_ADM: 0x03,
  PERF: 0x04,
  BM: 0x05,
  DEV_MGT: 0x06,
  CM: 0x07,
  SNMP: 0x08,
  VENDOR_RANGE1_FIRST: 0x09,
  VENDOR_RANGE1_LAST: 0x0f,
  DEV_ADM: 0x10,
  BOOT: 0x11,
  BIS: 0x12,
  CONG_MGT: 0x21,
  VENDOR_RANGE2_FIRST: 0x30,
  VENDOR_RANGE2_LAST: 0x4f,
  SUBN_DIRECTED_ROUTE: 0x81,
} as const;

/** Bit 7 of the method. */
export const METHOD_RESPONSE_BIT = 0x80;

export const MadMethod = {
  GET: 0x01,
  SET: 0x02,
  SEND: 0x03,
  TRAP: 0x05,
  REPORT: 0x06,
  TRAP_REPRESS: 0x07,
  GET_RESP: 0x81,
  REPORT_RESP: 0x86,
} as const;

/** Status bits 0 to 4 (IBTA table 102); the upper byte belongs to the class. */
export const MadStatus = {
  OK: 0x0000,
  BUSY: 0x0001,
  REDIRECT: 0x0002,
  BAD_VERSION: 0x0004,
  METHOD_UNSUPPORTED: 0x0008,
  METHOD_ATTRIBUTE_UNSUPPORTED: 0x000c,
  INVALID_ATTRIBUTE_VALUE: 0x001c,
} as const;

/** An attribute of every class. */
export const CLASS_PORT_INFO_ATTRIBUTE = 0x0001;

export interface MadHeader {
  readonly baseVersion: number;
  readonly managementClass: number;
  readonly classVersion: number;
  readonly method: number;
  readonly status: number;
  readonly classSpecific: number;
  /** Upper 32 bits of the transaction id: the requesting agent. */
  readonly transactionIdHi: number;
  readonly transactionIdLo: number;
  readonly attributeId: number;
  readonly attributeModifier: number;
}

const field = {
  baseVersion: 0,
  managementClass: 1,
  classVersion: 2,
  method: 3,
  status: 4,
  classSpecific: 6,
  transactionIdHi: 8,
  transactionIdLo: 12,
  attributeId: 16,
  reserved: 18,
  attributeModifier: 20,
} as const;

/** Undefined if the MAD is not 256 bytes or its base version is not 1: drop it. */
export function parseMadHeader(mad: Uint8Array): MadHeader | undefined {
  return mad.length === MAD_BYTES ? headerOfAnyLength(mad) : undefined;
}

/** The RMPP header of a MAD; undefined if there is none of version 1. */
export function headerOfAnyLength(mad: Uint8Array): MadHeader | undefined {
  if (mad.length < MAD_HEADER_LENGTH || mad[field.baseVersion] !== MAD_BASE_VERSION) {
    return undefined;
  }
  const view = new DataView(mad.buffer, mad.byteOffset, MAD_HEADER_LENGTH);
  return {
    baseVersion: MAD_BASE_VERSION,
    managementClass: view.getUint8(field.managementClass),
    classVersion: view.getUint8(field.classVersion),
    method: view.getUint8(field.method),
    status: view.getUint16(field.status),
    classSpecific: view.getUint16(field.classSpecific),
    transactionIdHi: view.getUint32(field.transactionIdHi),
    transactionIdLo: view.getUint32(field.transactionIdLo),
    attributeId: view.getUint16(field.attributeId),
    attributeModifier: view.getUint32(field.attributeModifier),
  };
}

/**
 * Writes the first 24 bytes.
 * @param mad at least 24 bytes
 * @throws RangeError naming field, value and limit; `mad` is untouched then
 */
export function emitMadHeader(header: MadHeader, mad: Uint8Array): void {
  checkRoom(mad);
  checkField('baseVersion', header.baseVersion, 0xff);
  checkField('managementClass', header.managementClass, 0xff);
  checkField('classVersion', header.classVersion, 0xff);
  checkField('method', header.method, 0xff);
  checkField('status', header.status, 0xffff);
  checkField('classSpecific', header.classSpecific, 0xffff);
  checkField('transactionIdHi', header.transactionIdHi, 0xffffffff);
  checkField('transactionIdLo', header.transactionIdLo, 0xffffffff);
  checkField('attributeId', header.attributeId, 0xffff);
  checkField('attributeModifier', header.attributeModifier, 0xffffffff);
  const view = new DataView(mad.buffer, mad.byteOffset, MAD_HEADER_LENGTH);
  view.setUint8(field.baseVersion, header.baseVersion);
  view.setUint8(field.managementClass, header.managementClass);
  view.setUint8(field.classVersion, header.classVersion);
  view.setUint8(field.method, header.method);
  view.setUint16(field.status, header.status);
  view.setUint16(field.classSpecific, header.classSpecific);
  view.setUint32(field.transactionIdHi, header.transactionIdHi);
  view.setUint32(field.transactionIdLo, header.transactionIdLo);
  view.setUint16(field.attributeId, header.attributeId);
  view.setUint16(field.reserved, 0);
  view.setUint32(field.attributeModifier, header.attributeModifier);
}

/**
 * True if a MAD answers another one (IBTA 13.4.5). CM messages never do: they are all Send, and the
 * CM matches them itself.
 */
export function isResponse(header: MadHeader): boolean {
  return (
    (header.method & METHOD_RESPONSE_BIT) !== 0 ||
    header.method === MadMethod.TRAP_REPRESS ||
    (header.managementClass === MadClass.BM && (header.attributeModifier & 1) !== 0)
  );
}

/** True if vendor MADs of this class carry an OUI after the RMPP header. */
export function isVendorRange2(managementClass: number): boolean {
  return (
    managementClass >= MadClass.VENDOR_RANGE2_FIRST &&
    managementClass <= MadClass.VENDOR_RANGE2_LAST
  );
}

/** True if a class may use RMPP (IBTA 13.6; the kernel's list). */
export function isRmppClass(managementClass: number): boolean {
  return RMPP_CLASSES.includes(managementClass) || isVendorRange2(managementClass);
}

const RMPP_CLASSES: readonly number[] = [
  MadClass.SUBN_ADM,
  MadClass.DEV_MGT,
  MadClass.DEV_ADM,
  MadClass.BIS,
];

/** Offset of the 3-byte OUI in a vendor range 2 MAD. */
const OUI_OFFSET = 37;

/** The 24-bit OUI of a vendor range 2 MAD of 256 bytes. */
export function vendorOui(mad: Uint8Array): number {
  const view = new DataView(mad.buffer, mad.byteOffset, mad.byteLength);
  return view.getUint32(OUI_OFFSET - 1) & 0xffffff;
}

/** Bytes of all headers before the data of a class (IBTA 13.4, 15.2, 16): 24, 36, 40, 56 or 64. */
export function classHeaderLength(managementClass: number, rmpp: boolean): number {
  if (managementClass === MadClass.SUBN_ADM) return 56;
  if (managementClass === MadClass.DEV_MGT) return 64;
  if (managementClass === MadClass.DEV_ADM || managementClass === MadClass.BIS) return 64;
  if (isVendorRange2(managementClass)) return 40;
  return rmpp ? 36 : MAD_HEADER_LENGTH;
}

function checkRoom(mad: Uint8Array): void {
  if (mad.length < MAD_HEADER_LENGTH) {
    throw new RangeError(`MAD has ${mad.length} bytes, must have at least ${MAD_HEADER_LENGTH}`);
  }
}

const badField: Refuse = (name, value, expected) => outOfRange(`MAD ${name}`, value, expected);

function checkField(name: string, value: number, max: number): void {
  checkInteger(name, value, 0, max, badField);
}
