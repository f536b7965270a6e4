/** READ, WRITE, WRITE AND VERIFY, VERIFY and PRE-FETCH (SBC-3 5). */
import { ScsiError } from '../common/scsi-error.js';
import type { LogicalUnit } from '../unit/logical-unit.js';
import type { Task } from '../unit/task.js';
import { blocksOf, type CdbSize, checkRange, checkWritable, lbaAt, transferOf } from './blocks.js';
import { type CommandRow, usage } from './row.js';

const FUA = 0x08;

/** Force unit access; the commands of 6 bytes cannot ask for it. */
function hasFua({ cdb }: Task, size: CdbSize): boolean {
  return size !== 6 && (cdb.getUint8(1) & FUA) !== 0;
}

/** A write is durable when it is answered, as FUA or a disabled write cache has it. */
export function mustBeDurable(task: Task, size: CdbSize = 16): boolean {
  return hasFua(task, size) || !task.unit.modePages.hasWriteCache;
}

export function readBlocks(unit: LogicalUnit, lba: bigint, into: Uint8Array): Promise<void> {
  return unit.lock.withOthers(() => unit.backend.read(lba, into));
}

async function read(task: Task, size: CdbSize): Promise<void> {
  const { unit } = task;
  const { lba, count } = transferOf(task, size);
  // What the medium gives is then what the cache has.
  if (hasFua(task, size) && !unit.backend.isReadOnly) await unit.backend.flush();
  await task.send(count * unit.backend.blockBytes, (offset, part) =>
    readBlocks(unit, lbaAt(unit, lba, offset), part),
  );
}

async function write(task: Task, size: CdbSize): Promise<void> {
  const { unit } = task;
  const { lba, count } = transferOf(task, size);
  checkWritable(unit);
  await store(task, lba, count, mustBeDurable(task, size));
}

/** One part is written through; of several, all are flushed at the end. */
async function store(task: Task, lba: bigint, count: number, isDurable: boolean): Promise<void> {
  const { unit } = task;
  const bytes = count * unit.backend.blockBytes;
  let parts = 0;
  await task.receive(bytes, (offset, part) => {
    parts++;
    const fua = isDurable && part.length === bytes;
    const at = lbaAt(unit, lba, offset);
    return unit.lock.withOthers(() => unit.backend.write(at, part, { fua }));
  });
  const isWrittenThrough = parts === 1 && task.command.dataOutBytes >= bytes;
  if (isDurable && parts > 0 && !isWrittenThrough) await unit.backend.flush();
}

/** Blocks that are compared with data-out (SBC-3 table 105). */
const ByteCheck = { NOTHING: 0, EVERY_BLOCK: 1, RESERVED: 2, ONE_BLOCK: 3 } as const;

function byteCheckOf({ cdb }: Task): number {
  return (cdb.getUint8(1) >> 1) & 0x03;
}

async function writeAndVerify(task: Task, size: CdbSize): Promise<void> {
  const { unit } = task;
  const { lba, count } = transferOf(task, size);
  const byteCheck = byteCheckOf(task);
  if (byteCheck > ByteCheck.EVERY_BLOCK) throw ScsiError.cdbField(1);
  checkWritable(unit);
  const { backend } = unit;
  await task.receive(
    count * backend.blockBytes,
    async (offset, part, scratch) => {
      const at = lbaAt(unit, lba, offset);
      await unit.lock.withOthers(async () => {
        await backend.write(at, part, { fua: true });
        await backend.read(at, scratch);
      });
      if (byteCheck === ByteCheck.EVERY_BLOCK) checkSame(offset, part, scratch);
    },
    true,
  );
}

async function verify(task: Task, size: CdbSize): Promise<void> {
  const { unit } = task;
  const { lba, count } = transferOf(task, size);
  const bytes = count * unit.backend.blockBytes;
  const readAt = (offset: number, into: Uint8Array): Promise<void> =>
    readBlocks(unit, lbaAt(unit, lba, offset), into);
  switch (byteCheckOf(task)) {
    case ByteCheck.NOTHING:
      return task.touch(bytes, readAt);
    case ByteCheck.EVERY_BLOCK:
      return task.receive(
        bytes,
        async (offset, part, scratch) => {
          await readAt(offset, scratch);
          checkSame(offset, part, scratch);
        },
        true,
      );
    case ByteCheck.ONE_BLOCK: {
      const block = count === 0 ? new Uint8Array() : await task.gather(unit.backend.blockBytes);
      return task.touch(bytes, async (offset, part) => {
        await readAt(offset, part);
        for (let at = 0; at < part.length; at += block.length) {
          checkSame(offset + at, block, part.subarray(at, at + block.length));
        }
      });
    }
    default:
      throw ScsiError.cdbField(1);
  }
}

/**
 * @param offset of the bytes in the command's data
 * @throws ScsiError MISCOMPARE with the offset of the first byte that differs (SBC-3 4.21)
 */
export function checkSame(offset: number, wanted: Uint8Array, found: Uint8Array): void {
  if (Buffer.compare(wanted, found) === 0) return;
  const at = wanted.findIndex((byte, i) => byte !== found[i]);
  throw ScsiError.check('MISCOMPARE_DURING_VERIFY', BigInt(offset + at));
}

/** There is no cache to fetch into: that the blocks are there is all that there is to say. */
async function preFetch(task: Task, size: 10 | 16): Promise<void> {
  const { lba, count } = blocksOf(task, size);
  checkRange(task.unit, lba, BigInt(count));
}

type Run = (task: Task, size: CdbSize) => Promise<void>;

const rows = (
  name: string,
  access: 'read' | 'write',
  run: Run,
  sizes: Readonly<Partial<Record<CdbSize, string>>>,
): CommandRow[] =>
  Object.entries(sizes).map(([digits, map]) => {
    const size = Number(digits) as CdbSize;
    const bytes = usage(map);
    return {
      name: `${name}(${size})`,
      opcode: bytes[0]!,
      usage: bytes,
      access,
      run: (task) => run(task, size),
    };
  });

export const MEDIUM_COMMANDS: readonly CommandRow[] = [
  ...rows('READ', 'read', read, {
    6: '08 1f ff ff ff 00',
    10: '28 18 ff ff ff ff 1f ff ff 00',
    12: 'a8 18 ff ff ff ff ff ff ff ff 1f 00',
    16: '88 18 ff ff ff ff ff ff ff ff ff ff ff ff 1f 00',
  }),
  ...rows('WRITE', 'write', write, {
    6: '0a 1f ff ff ff 00',
    10: '2a 18 ff ff ff ff 1f ff ff 00',
    12: 'aa 18 ff ff ff ff ff ff ff ff 1f 00',
    16: '8a 18 ff ff ff ff ff ff ff ff ff ff ff ff 1f 00',
  }),
  ...rows('WRITE AND VERIFY', 'write', writeAndVerify, {
    10: '2e 16 ff ff ff ff 1f ff ff 00',
    12: 'ae 16 ff ff ff ff ff ff ff ff 1f 00',
    16: '8e 16 ff ff ff ff ff ff ff ff ff ff ff ff 1f 00',
  }),
  ...rows('VERIFY', 'read', verify, {
    10: '2f 16 ff ff ff ff 1f ff ff 00',
    12: 'af 16 ff ff ff ff ff ff ff ff 1f 00',
    16: '8f 16 ff ff ff ff ff ff ff ff ff ff ff ff 1f 00',
  }),
  ...rows('PRE-FETCH', 'read', (task, size) => preFetch(task, size as 10 | 16), {
    10: '34 02 ff ff ff ff 1f ff ff 00',
    16: '90 02 ff ff ff ff ff ff ff ff ff ff ff ff 1f 00',
  }),
];
