/** READ CAPACITY and REPORT LUNS (SBC-3 5.15, 5.16; SPC-4 6.33). */
import { capacity10Data, capacity16Data, emitLun } from '../../wire/index.js';
import { ScsiError } from '../common/scsi-error.js';
import type { Exchange } from '../unit/exchange.js';
import type { Task } from '../unit/task.js';
import { type CommandRow, type TargetView, usage } from './row.js';

/** Stands for more blocks than 32 bits can count. */
const TOO_MANY = 0xffff_ffff;

async function readCapacity10(task: Task): Promise<void> {
  const { blockBytes, blockCount } = task.unit.backend;
  // PMI, which would ask for another block than the last one, is obsolete: so is the LBA.
  if (task.cdb.getUint32(2) !== 0) throw ScsiError.cdbField(2);
  const last = blockCount - 1n;
  const lastLba = last > BigInt(TOO_MANY) ? TOO_MANY : Number(last);
  const { bytes } = capacity10Data.make({ lastLba, blockBytes });
  await task.respond(bytes, bytes.length);
}

async function readCapacity16(task: Task): Promise<void> {
  const { backend, limits } = task.unit;
  const { blockBytes, blockCount } = backend;
  const data = capacity16Data.make({
    lastLba: blockCount - 1n,
    blockBytes,
    logicalPerPhysicalExponent: Math.log2(limits.physicalBlocks),
    provisioned: true,
    readsZeros: true,
  });
  await task.respond(data.bytes, task.cdb.getUint32(10));
}

/** SELECT REPORT (SPC-4 table 293). */
const SelectReport = { ALL_BUT_WELL_KNOWN: 0, WELL_KNOWN: 1, ALL: 2 } as const;
const MIN_ALLOCATION_LENGTH = 16;

/** There is no well known logical unit. */
export async function reportLuns(task: Exchange, { luns }: TargetView): Promise<void> {
  const select = task.cdb.getUint8(2);
  const allocationLength = task.cdb.getUint32(6);
  if (select > SelectReport.ALL) throw ScsiError.cdbField(2);
  if (allocationLength < MIN_ALLOCATION_LENGTH) throw ScsiError.cdbField(6);
  const told = select === SelectReport.WELL_KNOWN ? [] : luns;
  const data = new Uint8Array(8 + 8 * told.length);
  new DataView(data.buffer).setUint32(0, 8 * told.length);
  told.forEach((lun, i) => data.set(emitLun(lun), 8 + 8 * i));
  await task.respond(data, allocationLength);
}

export const REPORT_LUNS: CommandRow = {
  name: 'REPORT LUNS',
  opcode: 0xa0,
  usage: usage('a0 00 ff 00 00 00 ff ff ff ff 00 00'),
  access: 'exempt',
  runsBeforeAttention: true,
  runsWhileStopped: true,
  run: reportLuns,
};

export const CAPACITY_COMMANDS: readonly CommandRow[] = [
  {
    name: 'READ CAPACITY(10)',
    opcode: 0x25,
    usage: usage('25 00 ff ff ff ff 00 00 00 00'),
    access: 'inspect',
    run: readCapacity10,
  },
  {
    name: 'READ CAPACITY(16)',
    opcode: 0x9e,
    serviceAction: 0x10,
    usage: usage('9e 10 00 00 00 00 00 00 00 00 ff ff ff ff 00 00'),
    access: 'inspect',
    run: readCapacity16,
  },
];
