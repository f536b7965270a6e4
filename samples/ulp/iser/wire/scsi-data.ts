/** Data that disk commands return (SPC-4, SBC-3): the parts that an initiator reads. */
import { ascii, bits, flag, format, uint, uint64 } from './field-table.js';
import { readLun } from './lun.js';
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
