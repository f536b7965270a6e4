/** REPORT SUPPORTED OPERATION CODES: reports the command table (SPC-4 6.35). */
import { ScsiError } from '../common/scsi-error.js';
import type { Task } from '../unit/task.js';
import { type CommandRow, type TargetView, usage } from './row.js';

const RCTD = 0x80;
/** REPORTING OPTIONS (SPC-4 table 297). */
const Options = { ALL: 0, OPCODE: 1, SERVICE_ACTION: 2, EITHER: 3 } as const;
const TIMEOUTS_BYTES = 12;

async function reportSupportedOpcodes(task: Task, { commands }: TargetView): Promise<void> {
  const { cdb } = task;
  const options = cdb.getUint8(2) & 0x07;
  const withTimeouts = (cdb.getUint8(2) & RCTD) !== 0;
  const opcode = cdb.getUint8(3);
  const serviceAction = cdb.getUint16(4);
  const data =
    options === Options.ALL
      ? allCommands(commands, withTimeouts)
      : oneCommand(find(commands, options, opcode, serviceAction), withTimeouts);
  await task.respond(data, cdb.getUint32(6));
}

/** @throws ScsiError where the options do not fit the operation code (SPC-4 table 297) */
function find(
  commands: readonly CommandRow[],
  options: number,
  opcode: number,
  serviceAction: number,
): CommandRow | undefined {
  if (options > Options.EITHER) throw ScsiError.cdbField(2);
  const named = commands.filter((row) => row.opcode === opcode);
  const hasActions = named.some((row) => row.serviceAction !== undefined);
  if (named.length > 0) {
    if (options === Options.OPCODE && hasActions) throw ScsiError.cdbField(2);
    if (options === Options.SERVICE_ACTION && !hasActions) throw ScsiError.cdbField(2);
  }
  return named.find(
    (row) => (row.serviceAction ?? (hasActions ? -1 : 0)) === serviceAction || !hasActions,
  );
}

const SERVACTV = 0x01;
const CTDP = 0x02;

function allCommands(commands: readonly CommandRow[], withTimeouts: boolean): Uint8Array {
  const descriptors = commands.map((row) => {
    const view = new DataView(new ArrayBuffer(8));
    view.setUint8(0, row.opcode);
    view.setUint16(2, row.serviceAction ?? 0);
    view.setUint8(5, (row.serviceAction === undefined ? 0 : SERVACTV) | (withTimeouts ? CTDP : 0));
    view.setUint16(6, row.usage.length);
    const descriptor = new Uint8Array(view.buffer);
    return withTimeouts ? Buffer.concat([descriptor, noTimeouts()]) : descriptor;
  });
  const data = Buffer.concat([new Uint8Array(4), ...descriptors]);
  data.writeUInt32BE(data.length - 4, 0);
  return data;
}

const Support = { NOT_SUPPORTED: 0x01, AS_STANDARD: 0x03 } as const;
const CTDP_OF_ONE = 0x80;

function oneCommand(row: CommandRow | undefined, withTimeouts: boolean): Uint8Array {
  if (row === undefined) return Uint8Array.of(0, Support.NOT_SUPPORTED, 0, 0);
  const header = Uint8Array.of(
    0,
    Support.AS_STANDARD | (withTimeouts ? CTDP_OF_ONE : 0),
    0,
    row.usage.length,
  );
  return Buffer.concat([
    header,
    Uint8Array.from(row.usage),
    withTimeouts ? noTimeouts() : new Uint8Array(),
  ]);
}

/** A command timeouts descriptor that states none. */
function noTimeouts(): Uint8Array {
  const descriptor = new Uint8Array(TIMEOUTS_BYTES);
  descriptor[1] = TIMEOUTS_BYTES - 2;
  return descriptor;
}

/** Byte 0: ABORT TASK, ABORT TASK SET, CLEAR TASK SET, LOGICAL UNIT RESET, TARGET RESET. */
const TASK_MANAGEMENT = Uint8Array.of(0x80 | 0x40 | 0x10 | 0x08 | 0x02, 0, 0, 0);

async function reportTaskManagement(task: Task): Promise<void> {
  const allocationLength = task.cdb.getUint32(6);
  if (allocationLength < TASK_MANAGEMENT.length) throw ScsiError.cdbField(6);
  await task.respond(TASK_MANAGEMENT, allocationLength);
}

export const SUPPORT_COMMANDS: readonly CommandRow[] = [
  {
    name: 'REPORT SUPPORTED OPERATION CODES',
    opcode: 0xa3,
    serviceAction: 0x0c,
    usage: usage('a3 0c 87 ff ff ff ff ff ff ff 00 00'),
    access: 'exempt',
    runsWhileStopped: true,
    run: reportSupportedOpcodes,
  },
  {
    name: 'REPORT SUPPORTED TASK MANAGEMENT FUNCTIONS',
    opcode: 0xa3,
    serviceAction: 0x0d,
    usage: usage('a3 0d 00 00 00 00 ff ff ff ff 00 00'),
    access: 'exempt',
    runsWhileStopped: true,
    run: reportTaskManagement,
  },
];
