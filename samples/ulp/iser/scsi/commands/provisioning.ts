/** UNMAP, WRITE SAME and GET LBA STATUS (SBC-3 4.7, 5.4, 5.28, 5.40). */
import { ScsiError } from '../common/scsi-error.js';
import type { LogicalUnit } from '../unit/logical-unit.js';
import type { Task } from '../unit/task.js';
import { unmapDescriptor, unmapList } from '../../wire/index.js';
import { blocksOf, checkRange, checkWritable } from './blocks.js';
import { type CommandRow, usage } from './row.js';

async function unmap(task: Task): Promise<void> {
  const { unit, cdb } = task;
  const { backend, limits } = unit;
  checkWritable(unit);
  const listLength = cdb.getUint16(7);
  if (listLength === 0) return;
  if (listLength < unmapList.lengthBytes) throw ScsiError.check('PARAMETER_LIST_LENGTH_ERROR');
  const list = await task.gather(listLength);
  const { dataLength, descriptorsLength } = unmapList.view(list);
  // Both lengths are cut at what there is, as for allocation lengths (SBC-3 5.28.2).
  const there = Math.min(descriptorsLength, dataLength - 6, listLength - unmapList.lengthBytes);
  const descriptors = Math.floor(Math.max(there, 0) / unmapDescriptor.lengthBytes);
  if (descriptors > limits.maxUnmapDescriptors) throw ScsiError.listField(2);
  const ranges = Array.from({ length: descriptors }, (_, i) => {
    const at = unmapList.lengthBytes + i * unmapDescriptor.lengthBytes;
    const { lba, blocks } = unmapDescriptor.view(list, at);
    return { at, lba, blocks };
  });
  let total = 0;
  for (const { at, lba, blocks } of ranges) {
    if (lba > backend.blockCount || lba + BigInt(blocks) > backend.blockCount) {
      throw ScsiError.check('LBA_OUT_OF_RANGE', lba);
    }
    total += blocks;
    if (total > limits.maxUnmapBlocks) throw ScsiError.listField(at + 8);
  }
  for (const { lba, blocks } of ranges) {
    task.checkAborted();
    if (blocks > 0) await unit.lock.withOthers(() => backend.discard(lba, BigInt(blocks)));
  }
  await withoutCache(unit);
}

const WriteSame = { ANCHOR: 0x10, UNMAP: 0x08, NO_DATA_OUT: 0x01 } as const;

async function writeSame(task: Task, size: 10 | 16): Promise<void> {
  const { unit, cdb } = task;
  const { backend, limits } = unit;
  const flags = cdb.getUint8(1);
  const { lba, count } = blocksOf(task, size);
  checkRange(unit, lba, BigInt(count));
  // WSNZ is 0: no blocks are all that follow.
  const blocks = count === 0 ? backend.blockCount - lba : BigInt(count);
  const countByte = size === 10 ? 7 : 10;
  if (blocks > BigInt(limits.maxWriteSameBlocks)) throw ScsiError.cdbField(countByte);
  // Nothing can be anchored (ANC_SUP 0).
  if ((flags & WriteSame.ANCHOR) !== 0) throw ScsiError.cdbField(1);
  checkWritable(unit);
  const block = await patternOf(task, (flags & WriteSame.NO_DATA_OUT) !== 0);
  const isZero = block.every((byte) => byte === 0);
  if (!isZero) await fill(task, lba, blocks, block);
  else if ((flags & WriteSame.UNMAP) === 0) {
    await unit.lock.withOthers(() => backend.writeZeroes(lba, blocks));
  } else {
    await unit.lock.withOthers(() => backend.discard(lba, blocks));
  }
  await withoutCache(unit);
}

/** These commands have no FUA bit: with the write cache disabled they end with a flush. */
async function withoutCache({ backend, modePages }: LogicalUnit): Promise<void> {
  if (!modePages.hasWriteCache) await backend.flush();
}

/** @throws ScsiError for data-out of more or less than a block */
async function patternOf(task: Task, isZeroes: boolean): Promise<Uint8Array> {
  const { blockBytes } = task.unit.backend;
  if (isZeroes) return new Uint8Array(blockBytes);
  const block = await task.gather(blockBytes);
  if (task.command.dataOutBytes > blockBytes) {
    throw ScsiError.check('INVALID_FIELD_IN_INFORMATION_UNIT');
  }
  return block;
}

/** Blocks of the pattern are written in pieces of this size. */
const PIECE_BYTES = 1 << 18;

async function fill(task: Task, lba: bigint, blocks: bigint, block: Uint8Array): Promise<void> {
  const { backend, lock } = task.unit;
  const perPiece = BigInt(PIECE_BYTES / block.length);
  const pieceBlocks = blocks < perPiece ? blocks : perPiece;
  const piece = new Uint8Array(Number(pieceBlocks) * block.length);
  for (let at = 0; at < piece.length; at += block.length) piece.set(block, at);
  for (let done = 0n; done < blocks; done += pieceBlocks) {
    task.checkAborted();
    const left = blocks - done;
    const part = left < pieceBlocks ? piece.subarray(0, Number(left) * block.length) : piece;
    await lock.withOthers(() => backend.write(lba + done, part));
  }
}

const LBA_STATUS = { headerBytes: 8, descriptorBytes: 16, maxDescriptors: 64 } as const;
/** Provisioning status (SBC-3 table 60). */
const ProvisioningStatus = { MAPPED: 0, DEALLOCATED: 1 } as const;

async function getLbaStatus(task: Task): Promise<void> {
  const { unit, cdb } = task;
  const { backend } = unit;
  const lba = cdb.getBigUint64(2);
  const allocationLength = cdb.getUint32(10);
  checkRange(unit, lba, 0n);
  const { headerBytes, descriptorBytes, maxDescriptors } = LBA_STATUS;
  const room = Math.floor((allocationLength - headerBytes) / descriptorBytes);
  const most = Math.min(Math.max(room, 1), maxDescriptors);
  const descriptors: DataView[] = [];
  for (let at = lba; at < backend.blockCount && descriptors.length < most;) {
    const { blocks, isMapped } = backend.extentAt(at);
    const told = blocks > 0xffff_ffffn ? 0xffff_ffffn : blocks;
    const descriptor = new DataView(new ArrayBuffer(descriptorBytes));
    descriptor.setBigUint64(0, at);
    descriptor.setUint32(8, Number(told));
    descriptor.setUint8(12, isMapped ? ProvisioningStatus.MAPPED : ProvisioningStatus.DEALLOCATED);
    descriptors.push(descriptor);
    at += told;
  }
  const data = new Uint8Array(headerBytes + descriptors.length * descriptorBytes);
  new DataView(data.buffer).setUint32(0, data.length - 4);
  descriptors.forEach((descriptor, i) =>
    data.set(new Uint8Array(descriptor.buffer), headerBytes + i * descriptorBytes),
  );
  await task.respond(data, allocationLength);
}

export const PROVISIONING_COMMANDS: readonly CommandRow[] = [
  {
    name: 'UNMAP',
    opcode: 0x42,
    usage: usage('42 00 00 00 00 00 1f ff ff 00'),
    access: 'write',
    run: unmap,
  },
  {
    name: 'WRITE SAME(10)',
    opcode: 0x41,
    usage: usage('41 18 ff ff ff ff 1f ff ff 00'),
    access: 'write',
    run: (task) => writeSame(task, 10),
  },
  {
    name: 'WRITE SAME(16)',
    opcode: 0x93,
    usage: usage('93 19 ff ff ff ff ff ff ff ff ff ff ff ff 1f 00'),
    access: 'write',
    run: (task) => writeSame(task, 16),
  },
  {
    name: 'GET LBA STATUS',
    opcode: 0x9e,
    serviceAction: 0x12,
    usage: usage('9e 12 ff ff ff ff ff ff ff ff ff ff ff ff 00 00'),
    access: 'read',
    run: getLbaStatus,
  },
];
