/** What a logical unit takes in one command; the block limits page tells it (SBC-3 6.6.3). */
import type { BlockGeometry } from '../../../block/index.js';

export interface Limits {
  readonly maxTransferBlocks: number;
  readonly optimalTransferBlocks: number;
  readonly maxCompareAndWriteBlocks: number;
  readonly maxUnmapBlocks: number;
  readonly maxUnmapDescriptors: number;
  readonly maxWriteSameBlocks: number;
  /** Logical blocks of a physical one: writes and discards of whole ones are cheaper. */
  readonly physicalBlocks: number;
}

const KIB = 1024;
const MIB = KIB * KIB;

/** READ, WRITE and VERIFY go through the buffer pool chunk by chunk: this bounds their time. */
const MAX_TRANSFER_BYTES = 32 * MIB;
const OPTIMAL_TRANSFER_BYTES = 256 * KIB;
/** Both halves of the data are kept in memory of the command's own. */
const MAX_COMPARE_AND_WRITE_BYTES = 64 * KIB;
const MAX_WRITE_SAME_BYTES = 64 * MIB;
/** File systems and flash have blocks of this size; holes in files are of whole ones. */
const PHYSICAL_BLOCK_BYTES = 4096;
const MAX_UNMAP_BLOCKS = 1 << 20;
const MAX_UNMAP_DESCRIPTORS = 256;

export function limitsOf({ blockBytes }: BlockGeometry): Limits {
  return {
    maxTransferBlocks: MAX_TRANSFER_BYTES / blockBytes,
    optimalTransferBlocks: OPTIMAL_TRANSFER_BYTES / blockBytes,
    maxCompareAndWriteBlocks: MAX_COMPARE_AND_WRITE_BYTES / blockBytes,
    maxUnmapBlocks: MAX_UNMAP_BLOCKS,
    maxUnmapDescriptors: MAX_UNMAP_DESCRIPTORS,
    maxWriteSameBlocks: MAX_WRITE_SAME_BYTES / blockBytes,
    physicalBlocks: PHYSICAL_BLOCK_BYTES / blockBytes,
  };
}
