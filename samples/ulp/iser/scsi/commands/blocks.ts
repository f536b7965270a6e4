/** Reads a command's block range from its CDB, and checks that it exists and may be written. */
import { ScsiError } from '../common/scsi-error.js';
import type { LogicalUnit } from '../unit/logical-unit.js';
import type { Task } from '../unit/task.js';

/** By the length of the CDB. */
export type CdbSize = 6 | 10 | 12 | 16;

export interface Blocks {
  readonly lba: bigint;
  readonly count: number;
}

interface Place {
  readonly lba: (cdb: DataView) => bigint;
  readonly count: (cdb: DataView) => number;
  /** Byte of the count, for sense data. */
  readonly countByte: number;
}

/** Position of LBA and transfer length (SBC-3 5.8 to 5.11). */
const PLACES: Readonly<Record<CdbSize, Place>> = {
  6: {
    lba: (cdb) => BigInt(cdb.getUint32(0) & 0x1f_ffff),
    // 0 means 256.
    count: (cdb) => cdb.getUint8(4) || 256,
    countByte: 4,
  },
  10: { lba: (cdb) => BigInt(cdb.getUint32(2)), count: (cdb) => cdb.getUint16(7), countByte: 7 },
  12: { lba: (cdb) => BigInt(cdb.getUint32(2)), count: (cdb) => cdb.getUint32(6), countByte: 6 },
  16: { lba: (cdb) => cdb.getBigUint64(2), count: (cdb) => cdb.getUint32(10), countByte: 10 },
};

/** The range in the CDB, unchecked. */
export function blocksOf({ cdb }: Task, size: CdbSize): Blocks {
  return { lba: PLACES[size].lba(cdb), count: PLACES[size].count(cdb) };
}

/**
 * The blocks of a READ, WRITE or VERIFY.
 * @throws ScsiError LBA OUT OF RANGE, and INVALID FIELD IN CDB beyond the maximum transfer length
 */
export function transferOf(task: Task, size: CdbSize): Blocks {
  const blocks = blocksOf(task, size);
  checkRange(task.unit, blocks.lba, BigInt(blocks.count));
  if (blocks.count > task.unit.limits.maxTransferBlocks) {
    throw ScsiError.cdbField(PLACES[size].countByte);
  }
  return blocks;
}

/** @throws ScsiError LBA OUT OF RANGE, also for no blocks at an LBA that is not there */
export function checkRange({ backend }: LogicalUnit, lba: bigint, count: bigint): void {
  if (lba < backend.blockCount && lba + count <= backend.blockCount) return;
  throw ScsiError.check('LBA_OUT_OF_RANGE', lba);
}

/** @throws ScsiError WRITE PROTECTED, or its software form (SWP of the control page) */
export function checkWritable({ backend, modePages }: LogicalUnit): void {
  if (backend.isReadOnly) throw ScsiError.check('WRITE_PROTECTED');
  if (modePages.isWriteProtected) throw ScsiError.check('LOGICAL_UNIT_SOFTWARE_WRITE_PROTECTED');
}

/** The LBA that is so many bytes further. */
export function lbaAt(unit: LogicalUnit, lba: bigint, offset: number): bigint {
  return lba + BigInt(offset / unit.backend.blockBytes);
}
