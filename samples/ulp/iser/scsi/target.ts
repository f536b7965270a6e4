/** Dispatches a command to its logical unit and builds the response. */
import { BlockError, type BufferPool } from '../../block/index.js';
import {
  emitDescriptorSense,
  emitFixedSense,
  emitLun,
  readLun,
  type Sense,
} from '../wire/index.js';
import type { CommandRow, TargetView } from './commands/row.js';
import { commandOf, COMMANDS } from './commands/table.js';
import {
  type ScsiCommand,
  type ScsiResult,
  ScsiStatus,
  type TaskManagementAnswer,
  type TaskManagementFunction,
} from './common/command.js';
import { CONDITION } from './common/conditions.js';
import { fromBlockError, ScsiError } from './common/scsi-error.js';
import type { LogicalUnit } from './unit/logical-unit.js';
import { Exchange, TaskAborted } from './unit/exchange.js';
import { Task } from './unit/task.js';
import type { TaskEntry } from './unit/task-set.js';
import { REPORT_LUNS, reportLuns } from './commands/capacity.js';
import { INQUIRY, Peripheral, standardInquiry } from './commands/inquiry.js';
import { REQUEST_SENSE } from './commands/state.js';

export interface ScsiTargetOptions {
  /** The iSCSI name. */
  readonly name: string;
  /** By LUN, 0 to 16383. */
  readonly units: ReadonlyMap<number, LogicalUnit>;
  /** Buffers for the data of commands in flight; an RDMA data mover registers its memory. */
  readonly pool: BufferPool;
}

const NO_SENSE: Uint8Array = new Uint8Array();

export class ScsiTarget {
  private readonly units: ReadonlyMap<number, LogicalUnit>;
  private readonly pool: BufferPool;
  private readonly view: TargetView;

  /** @throws RangeError for a LUN that does not exist */
  constructor({ name, units, pool }: ScsiTargetOptions) {
    const luns = [...units.keys()].sort((a, b) => a - b);
    // Throws for a number that has no LUN.
    luns.forEach(emitLun);
    this.units = units;
    this.pool = pool;
    this.view = { name, luns, commands: COMMANDS };
  }

  /** Executes a command. It never rejects: errors are in status and sense. */
  async execute(command: ScsiCommand): Promise<ScsiResult> {
    const unit = this.unitAt(command.lun);
    if (unit === undefined) return this.executeAbsent(command);
    const task = new Task(unit, command, this.pool);
    let entry: TaskEntry | undefined;
    try {
      await unit.tasks.run(command, (entered) => {
        entry = entered;
        return this.perform(task);
      });
      return answer(task, ScsiStatus.GOOD);
    } catch (error) {
      return failure(task, error, unit, entry?.isAbortedByOther);
    }
  }

  /**
   * Resolves when the commands concerned have ended. ABORT TASK is the transport's: it aborts the
   * one command and waits for its result.
   */
  async manage(
    what: TaskManagementFunction,
    initiatorPort: string,
    lun: Uint8Array,
  ): Promise<TaskManagementAnswer> {
    if (what === 'CLEAR ACA') return 'FUNCTION NOT SUPPORTED';
    if (what === 'TARGET WARM RESET' || what === 'TARGET COLD RESET') {
      for (const each of this.units.values()) await each.reset(initiatorPort);
      return 'FUNCTION COMPLETE';
    }
    const unit = this.unitAt(lun);
    if (unit === undefined) return 'INCORRECT LOGICAL UNIT NUMBER';
    await manageUnit(unit, what, initiatorPort);
    return 'FUNCTION COMPLETE';
  }

  /** A session has begun: its nexus has no unit attentions and no tasks. */
  nexusOpened(initiatorPort: string): void {
    for (const unit of this.units.values()) unit.nexusOpened(initiatorPort);
  }

  /** The session ended, by logout or otherwise: its tasks are aborted, its RESERVE(6) released. */
  async nexusLost(initiatorPort: string): Promise<void> {
    await Promise.all([...this.units.values()].map((unit) => unit.nexusLost(initiatorPort)));
  }

  private async executeAbsent(command: ScsiCommand): Promise<ScsiResult> {
    const exchange = new Exchange(command, this.pool);
    try {
      await performAbsent(exchange, this.view);
      return answer(exchange, ScsiStatus.GOOD);
    } catch (error) {
      return failure(exchange, error);
    }
  }

  private unitAt(lun: Uint8Array): LogicalUnit | undefined {
    const number = readLun(lun);
    return number === undefined ? undefined : this.units.get(number);
  }

  /** The order of the checks is that of SAM-5 5.3.3 and SPC-4 5.13: first what concerns the CDB. */
  private async perform(task: Task): Promise<void> {
    const { unit, command, nexus } = task;
    task.checkAborted();
    if (command.attribute === 'ACA') throw ScsiError.check('INVALID_MESSAGE_ERROR');
    const row = commandOf(command.cdb);
    reportAttention(task, row);
    if (!unit.allows(nexus, row.access)) {
      throw ScsiError.withStatus(ScsiStatus.RESERVATION_CONFLICT);
    }
    if (!unit.isStarted && row.runsWhileStopped !== true) {
      throw ScsiError.check('INITIALIZING_COMMAND_REQUIRED');
    }
    await row.run(task, this.view);
    task.checkAborted();
  }
}

function reportAttention({ unit, nexus }: Task, row: CommandRow): void {
  if (row.runsBeforeAttention === true) return;
  const condition = unit.attentions.take(nexus);
  if (condition !== undefined) throw ScsiError.check(condition);
}

async function manageUnit(
  unit: LogicalUnit,
  what: 'ABORT TASK SET' | 'CLEAR TASK SET' | 'LOGICAL UNIT RESET',
  by: string,
): Promise<void> {
  switch (what) {
    // Each nexus has a task set of its own (TST), which both are about.
    case 'ABORT TASK SET':
    case 'CLEAR TASK SET':
      return unit.tasks.abort(by, (nexus) => nexus === by);
    case 'LOGICAL UNIT RESET':
      return unit.reset(by);
  }
}

function answer(exchange: Exchange, status: ScsiStatus, sense = NO_SENSE): ScsiResult {
  return { status, sense, residual: exchange.residual, isAborted: false };
}

/** @param isAbortedByOther the initiator is told that its task was aborted (TAS) */
function failure(
  exchange: Exchange,
  error: unknown,
  unit?: LogicalUnit,
  isAbortedByOther = false,
): ScsiResult {
  if (error instanceof TaskAborted) {
    return { ...answer(exchange, ScsiStatus.TASK_ABORTED), isAborted: !isAbortedByOther };
  }
  const known = error instanceof BlockError ? fromBlockError(error) : error;
  if (known instanceof ScsiError) return answer(exchange, known.status, senseOf(known, unit));
  // A bug of this program, or a transport that failed without ending the command.
  unit?.onFault(error);
  const fault = ScsiError.check('INTERNAL_TARGET_FAILURE');
  return answer(exchange, fault.status, senseOf(fault, unit));
}

function senseOf({ condition, information, field }: ScsiError, unit?: LogicalUnit): Uint8Array {
  if (condition === undefined) return NO_SENSE;
  const sense: Sense = {
    ...CONDITION[condition],
    ...(information !== undefined && { information }),
    ...(field !== undefined && { field }),
  };
  const isDescriptor = unit?.modePages.hasDescriptorSense === true;
  return isDescriptor ? emitDescriptorSense(sense) : emitFixedSense(sense);
}

const EVPD = 0x01;

/**
 * Performs a command to a LUN without a logical unit (SPC-4 6.6.1, 6.33, 6.39).
 * @throws ScsiError LOGICAL UNIT NOT SUPPORTED for any command but three
 */
async function performAbsent(exchange: Exchange, target: TargetView): Promise<void> {
  const { cdb, command } = exchange;
  switch (cdb.getUint8(0)) {
    case INQUIRY.opcode:
      commandOf(command.cdb);
      if ((cdb.getUint8(1) & EVPD) !== 0 || cdb.getUint8(2) !== 0) throw ScsiError.cdbField(2);
      return exchange.respond(standardInquiry(Peripheral.ABSENT), cdb.getUint16(3));
    case REPORT_LUNS.opcode:
      commandOf(command.cdb);
      return reportLuns(exchange, target);
    case REQUEST_SENSE.opcode: {
      commandOf(command.cdb);
      const sense = emitFixedSense(CONDITION.LOGICAL_UNIT_NOT_SUPPORTED);
      return exchange.respond(sense, cdb.getUint8(4));
    }
    default:
      throw ScsiError.check('LOGICAL_UNIT_NOT_SUPPORTED');
  }
}
