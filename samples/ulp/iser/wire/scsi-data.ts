/** Data that disk commands return (SPC-4, SBC-3), as an initiator reads it, and LUNs. */
import { ascii, bits, flag, format, uint, uint64 } from './field-table.js';
import { WireError } from './wire-error.js';

/** Standard INQUIRY data (SPC-4 6.6.2). */
export const inquiryData = format('INQUIRY data', 36, {
  /** 0: a logical unit is there; 3: none can be. */
  peripheralQualifier: bits(0, 0xe0),
  /** 0: a disk. */
  peripheralDeviceType: bits(0, 0x1f),
  removable: flag(1, 0x80),
  version: uint(2, 1),
  additionalLength: uint(4, 1),
  vendor: ascii(8, 8),
  product: ascii(16, 16),
  revision: ascii(32, 4),
});

/** READ CAPACITY(10) data (SBC-3 5.15). */
export const capacity10Data = format('READ CAPACITY(10) data', 8, {
  /** 2^32 - 1: more than can be said here. */
  lastLba: uint(0, 4),
  blockBytes: uint(4, 4),
});

/** READ CAPACITY(16) data (SBC-3 5.16). */
export const capacity16Data = format('READ CAPACITY(16) data', 32, {
  lastLba: uint64(0),
  blockBytes: uint(8, 4),
  protectionEnabled: flag(12, 0x01),
  /** Logical blocks of a physical one, as a power of 2. */
  logicalPerPhysicalExponent: bits(13, 0x0f),
  /** Blocks may be unmapped. */
  provisioned: flag(14, 0x80),
  /** Unmapped blocks read as zeros. */
  readsZeros: flag(14, 0x40),
});

/** Vital product data page B0h (SBC-3 6.6.3), whose fields are 0 where the disk states none. */
export const blockLimitsPage = format('block limits page', 64, {
  pageCode: uint(1, 1),
  pageLength: uint(2, 2),
  maxCompareAndWriteBlocks: uint(5, 1),
  maxTransferBlocks: uint(8, 4),
  optimalTransferBlocks: uint(12, 4),
  maxUnmapBlocks: uint(20, 4),
  maxUnmapDescriptors: uint(24, 4),
  unmapGranularity: uint(28, 4),
  maxWriteSameBlocks: uint64(36),
});

/** MODE SENSE(6) header (SPC-4 7.5.5). */
export const modeHeader6 = format('mode parameter header', 4, {
  dataLength: uint(0, 1),
  mediumType: uint(1, 1),
  writeProtected: flag(2, 0x80),
  /** The disk takes DPO and FUA. */
  dpoFua: flag(2, 0x10),
  blockDescriptorLength: uint(3, 1),
});

/**
 * LUNs of REPORT LUNS data (SPC-4 6.33) that have a single level; others are left out.
 * @throws WireError for a list that is cut off within an entry
 */
export function readLuns(data: Uint8Array): number[] {
  if (data.length < 8) {
    throw new WireError('length', 'REPORT LUNS data in bytes', data.length, 'at least 8');
  }
  const lengthBytes = new DataView(data.buffer, data.byteOffset, 4).getUint32(0);
  if (lengthBytes % 8 !== 0) {
    throw new WireError('field', 'LUN list length', lengthBytes, 'a multiple of 8');
  }
  const luns: number[] = [];
  const end = Math.min(data.length, 8 + lengthBytes);
  for (let at = 8; at + 8 <= end; at += 8) {
    const lun = readLun(data.subarray(at, at + 8));
    if (lun !== undefined) luns.push(lun);
  }
  return luns;
}

// Logical unit numbers: 8 bytes on the wire (SAM-5 4.7).

/** Numbers of the flat space addressing method: 14 bits. */
export const MAX_LUN = 0x3fff;

/**
 * A single-level LUN: peripheral device addressing below 256, else flat space addressing.
 * @param lun 0 to 16,383
 * @throws RangeError for another number
 */
export function emitLun(lun: number): Uint8Array {
  if (!Number.isInteger(lun) || lun < 0 || lun > MAX_LUN) {
    throw new RangeError(`LUN is ${lun}, must be 0 to ${MAX_LUN}`);
  }
  const bytes = new Uint8Array(8);
  bytes[0] = (lun < 256 ? 0 : 0x40) | (lun >>> 8);
  bytes[1] = lun;
  return bytes;
}

/** The number, or undefined for a LUN of several levels or of another addressing method. */
export function readLun(bytes: Uint8Array): number | undefined {
  for (let place = 2; place < 8; place++) if (bytes[place] !== 0) return undefined;
  const method = bytes[0]! >>> 6;
  if (method === 0) return bytes[0] === 0 ? bytes[1] : undefined;
  return method === 1 ? ((bytes[0]! & 0x3f) << 8) | bytes[1]! : undefined;
}
