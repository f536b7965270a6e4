/** COMPARE AND WRITE and ORWRITE: read, decide, write, with nothing in between (SBC-3 5.3, 5.6). */
import { ScsiError } from '../common/scsi-error.js';
import type { Task } from '../unit/task.js';
import { checkRange, checkWritable, lbaAt, transferOf } from './blocks.js';
import { checkSame, mustBeDurable } from './medium.js';
import { type CommandRow, usage } from './row.js';

async function compareAndWrite(task: Task): Promise<void> {
  const { unit, cdb } = task;
  const { backend, limits } = unit;
  const lba = cdb.getBigUint64(2);
  const count = cdb.getUint8(13);
  checkRange(unit, lba, BigInt(count));
  if (count > limits.maxCompareAndWriteBlocks) throw ScsiError.cdbField(13);
  const half = count * backend.blockBytes;
  // Which blocks are compared and which are written depends on it.
  if (task.command.dataOutBytes !== 2 * half) throw ScsiError.cdbField(13);
  checkWritable(unit);
  if (count === 0) return;
  const data = await task.gather(2 * half);
  const found = new Uint8Array(half);
  await unit.lock.alone(async () => {
    task.checkAborted();
    await backend.read(lba, found);
    checkSame(0, data.subarray(0, half), found);
    await backend.write(lba, data.subarray(half), { fua: mustBeDurable(task) });
  });
}

/** The blocks become the bitwise OR of what they were and data-out. */
async function orWrite(task: Task): Promise<void> {
  const { unit } = task;
  const { backend } = unit;
  const { lba, count } = transferOf(task, 16);
  checkWritable(unit);
  const fua = mustBeDurable(task);
  await task.receive(
    count * backend.blockBytes,
    (offset, part, scratch) =>
      unit.lock.alone(async () => {
        const at = lbaAt(unit, lba, offset);
        await backend.read(at, scratch);
        for (let i = 0; i < part.length; i++) scratch[i]! |= part[i]!;
        await backend.write(at, scratch, { fua });
      }),
    true,
  );
}

export const ATOMIC_COMMANDS: readonly CommandRow[] = [
  {
    name: 'COMPARE AND WRITE',
    opcode: 0x89,
    usage: usage('89 18 ff ff ff ff ff ff ff ff 00 00 00 ff 1f 00'),
    access: 'write',
    run: compareAndWrite,
  },
  {
    name: 'ORWRITE(16)',
    opcode: 0x8b,
    usage: usage('8b 18 ff ff ff ff ff ff ff ff ff ff ff ff 1f 00'),
    access: 'write',
    run: orWrite,
  },
];
