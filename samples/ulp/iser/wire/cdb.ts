/** Command descriptor blocks that an initiator of a disk sends (SPC-4, SBC-3). */
import { bits, flag, format, uint, uint64 } from './field-table.js';

/** Operation codes. */
export const SCSI_OPCODE = {
  TEST_UNIT_READY: 0x00,
  REQUEST_SENSE: 0x03,
  INQUIRY: 0x12,
  MODE_SENSE_6: 0x1a,
  READ_CAPACITY_10: 0x25,
  SYNCHRONIZE_CACHE_10: 0x35,
  UNMAP: 0x42,
  READ_16: 0x88,
  COMPARE_AND_WRITE: 0x89,
  WRITE_16: 0x8a,
  SERVICE_ACTION_IN_16: 0x9e,
  REPORT_LUNS: 0xa0,
} as const;

const operation = bits(0, 0xff);

export const testUnitReady = format(
  'TEST UNIT READY',
  6,
  { operation },
  { operation: SCSI_OPCODE.TEST_UNIT_READY },
);

export const inquiry = format(
  'INQUIRY',
  6,
  {
    operation,
    /** Vital product data: `pageCode` says which. */
    evpd: flag(1, 0x01),
    pageCode: uint(2, 1),
    allocationLength: uint(3, 2),
  },
  { operation: SCSI_OPCODE.INQUIRY },
);

export const modeSense6 = format(
  'MODE SENSE(6)',
  6,
  {
    operation,
    disableBlockDescriptors: flag(1, 0x08),
    pageControl: bits(2, 0xc0),
    pageCode: bits(2, 0x3f),
    subpageCode: uint(3, 1),
    allocationLength: uint(4, 1),
  },
  { operation: SCSI_OPCODE.MODE_SENSE_6 },
);

export const reportLuns = format(
  'REPORT LUNS',
  12,
  { operation, selectReport: uint(2, 1), allocationLength: uint(6, 4) },
  { operation: SCSI_OPCODE.REPORT_LUNS },
);

export const readCapacity10 = format(
  'READ CAPACITY(10)',
  10,
  { operation },
  { operation: SCSI_OPCODE.READ_CAPACITY_10 },
);

export const readCapacity16 = format(
  'READ CAPACITY(16)',
  16,
  { operation, serviceAction: bits(1, 0x1f), allocationLength: uint(10, 4) },
  { operation: SCSI_OPCODE.SERVICE_ACTION_IN_16, serviceAction: 0x10 },
);

/** Fields that READ(16) and WRITE(16) share. */
const TRANSFER_16 = {
  operation,
  protect: bits(1, 0xe0),
  /** Disable page out: the blocks will not be wanted again soon. */
  dpo: flag(1, 0x10),
  lba: uint64(2),
  transferLength: uint(10, 4),
  group: bits(14, 0x1f),
} as const;

/** Force unit access: to or from the medium, not the cache. */
const fua = flag(1, 0x08);

export const read16 = format(
  'READ(16)',
  16,
  { ...TRANSFER_16, fua },
  { operation: SCSI_OPCODE.READ_16 },
);

export const write16 = format(
  'WRITE(16)',
  16,
  { ...TRANSFER_16, fua },
  { operation: SCSI_OPCODE.WRITE_16 },
);

export const synchronizeCache10 = format(
  'SYNCHRONIZE CACHE(10)',
  10,
  { operation, immediate: flag(1, 0x02), lba: uint(2, 4), blocks: uint(7, 2) },
  { operation: SCSI_OPCODE.SYNCHRONIZE_CACHE_10 },
);

export const unmap = format(
  'UNMAP',
  10,
  { operation, anchor: flag(1, 0x01), parameterListLength: uint(7, 2) },
  { operation: SCSI_OPCODE.UNMAP },
);

/** The header of UNMAP's parameter list. */
export const unmapList = format('UNMAP parameter list', 8, {
  /** Bytes that follow this field. */
  dataLength: uint(0, 2),
  /** Bytes of all descriptors. */
  descriptorsLength: uint(2, 2),
});

export const unmapDescriptor = format('UNMAP block descriptor', 16, {
  lba: uint64(0),
  blocks: uint(8, 4),
});

export const compareAndWrite = format(
  'COMPARE AND WRITE',
  16,
  {
    operation,
    protect: bits(1, 0xe0),
    dpo: flag(1, 0x10),
    fua,
    lba: uint64(2),
    /** The data-out buffer has twice as many: those to compare with, then those to write. */
    blocks: uint(13, 1),
    group: bits(14, 0x1f),
  },
  { operation: SCSI_OPCODE.COMPARE_AND_WRITE },
);
