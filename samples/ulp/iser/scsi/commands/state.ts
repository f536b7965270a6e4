/** TEST UNIT READY, cache commands and REQUEST SENSE: state of the unit. */
import { emitDescriptorSense, emitFixedSense } from '../../wire/index.js';
import { CONDITION } from '../common/conditions.js';
import { ScsiError } from '../common/scsi-error.js';
import type { Task } from '../unit/task.js';
import { blocksOf, checkRange } from './blocks.js';
import { type CommandRow, usage } from './row.js';

const DESC = 0x01;

/** Tells, and so ends, a unit attention; of other conditions none is kept (SPC-4 6.39). */
async function requestSense(task: Task): Promise<void> {
  const { cdb, unit, nexus } = task;
  const pending = unit.attentions.take(nexus);
  const stopped = unit.isStarted ? 'NO_ADDITIONAL_SENSE' : 'INITIALIZING_COMMAND_REQUIRED';
  const condition = CONDITION[pending ?? stopped];
  const isDescriptor = (cdb.getUint8(1) & DESC) !== 0;
  const sense = isDescriptor ? emitDescriptorSense(condition) : emitFixedSense(condition);
  await task.respond(sense, cdb.getUint8(4));
}

/** IMMED is not made use of: the answer always means that the blocks are on the medium. */
async function synchronizeCache(task: Task, size: 10 | 16): Promise<void> {
  const { lba, count } = blocksOf(task, size);
  checkRange(task.unit, lba, BigInt(count));
  await task.unit.backend.flush();
}

const StartStop = { START: 0x01, LOAD_EJECT: 0x02, NO_FLUSH: 0x04, POWER_CONDITION: 0xf0 } as const;

/** Nothing can be ejected, and there are no power conditions. */
async function startStopUnit(task: Task): Promise<void> {
  const { cdb, unit } = task;
  const flags = cdb.getUint8(4);
  if ((flags & (StartStop.LOAD_EJECT | StartStop.POWER_CONDITION)) !== 0)
    throw ScsiError.cdbField(4);
  const starts = (flags & StartStop.START) !== 0;
  if (!starts && (flags & StartStop.NO_FLUSH) === 0) await unit.backend.flush();
  unit.isStarted = starts;
}

export const REQUEST_SENSE: CommandRow = {
  name: 'REQUEST SENSE',
  opcode: 0x03,
  usage: usage('03 01 00 00 ff 00'),
  access: 'exempt',
  runsBeforeAttention: true,
  runsWhileStopped: true,
  run: requestSense,
};

export const STATE_COMMANDS: readonly CommandRow[] = [
  {
    name: 'TEST UNIT READY',
    opcode: 0x00,
    usage: usage('00 00 00 00 00 00'),
    access: 'inspect',
    run: async (): Promise<void> => {},
  },
  {
    name: 'START STOP UNIT',
    opcode: 0x1b,
    usage: usage('1b 01 00 00 f7 00'),
    access: 'write',
    runsWhileStopped: true,
    run: startStopUnit,
  },
  {
    name: 'SYNCHRONIZE CACHE(10)',
    opcode: 0x35,
    usage: usage('35 06 ff ff ff ff 1f ff ff 00'),
    access: 'write',
    run: (task) => synchronizeCache(task, 10),
  },
  {
    name: 'SYNCHRONIZE CACHE(16)',
    opcode: 0x91,
    usage: usage('91 06 ff ff ff ff ff ff ff ff ff ff ff ff 1f 00'),
    access: 'write',
    run: (task) => synchronizeCache(task, 16),
  },
];
