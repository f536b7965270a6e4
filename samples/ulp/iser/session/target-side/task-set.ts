/** The unanswered commands of a session, and its task management (RFC 7143, 11.5). */
import {
  emitFixedSense,
  emitSenseSegment,
  type InitiatorPdu,
  REJECT_REASON,
  RESERVED_TAG,
  SCSI_RESPONSE_CODE,
  SCSI_STATUS,
  type ScsiCommand,
  SENSE_KEY,
  TASK_FUNCTION,
  TASK_RESPONSE,
  type TaskManagementRequest,
} from '../../wire/index.js';
import { CommandAbort, type TaskSignal } from './command-abort.js';
import type { AdvertisedBuffers, Datamover, TransferTask } from './datamover.js';
import type {
  DeviceCommand,
  DeviceResult,
  DeviceServer,
  ManagementAnswer,
  ManagementFunction,
} from './device-server.js';
import type { Negotiated } from './login/operational.js';
import { ProtocolFault } from './protocol-fault.js';
import type { Responder } from './responder.js';

/** One SCSI command of a session, from the PDU that brought it to its end. */
const NO_DATA = new Uint8Array(0);
const ATTRIBUTES = ['SIMPLE', 'SIMPLE', 'ORDERED', 'HEAD OF QUEUE', 'ACA'] as const;
/** Values of `attribute` that a command may have. */
const ATTRIBUTE_COUNT = ATTRIBUTES.length;

interface TaskParts {
  readonly initiatorPort: string;
  readonly header: ScsiCommand;
  /** The part of the CDB after the 16 bytes of the header. */
  readonly extendedCdb: Uint8Array | undefined;
  /** Data that was sent with the command. */
  readonly immediateData: Uint8Array;
  readonly advertised: AdvertisedBuffers | undefined;
}

/** A task. It keeps no part of the PDU, whose buffer is reused. */
class Task implements TransferTask, DeviceCommand {
  readonly initiatorPort: string;
  readonly initiatorTaskTag: number;
  readonly lun: Uint8Array;
  readonly cdb: Uint8Array;
  readonly attribute: DeviceCommand['attribute'];
  readonly dataOutBytes: number;
  readonly dataInBytes: number;
  readonly advertised: AdvertisedBuffers | undefined;
  /** True if it has a place in the command window. */
  readonly takesCmdSn: boolean;
  readonly abort = new CommandAbort();
  private readonly immediateData: Uint8Array;
  private hasEnded = false;
  private readonly waiters: (() => void)[] = [];

  constructor(
    { initiatorPort, header, extendedCdb, immediateData, advertised }: TaskParts,
    private readonly mover: Datamover,
  ) {
    this.initiatorPort = initiatorPort;
    this.initiatorTaskTag = header.initiatorTaskTag;
    this.lun = header.lun.slice();
    this.cdb = extendedCdb === undefined ? header.cdb.slice() : joined(header.cdb, extendedCdb);
    this.attribute = ATTRIBUTES[header.attribute] ?? 'SIMPLE';
    this.dataOutBytes = header.write ? header.expectedDataTransferLength : 0;
    this.dataInBytes = header.read ? header.expectedDataTransferLength : 0;
    this.advertised = advertised;
    this.takesCmdSn = !header.immediate;
    this.immediateData = immediateData.length === 0 ? NO_DATA : immediateData.slice();
  }

  get signal(): TaskSignal {
    return this.abort;
  }

  get unsolicitedBytes(): number {
    return this.immediateData.length;
  }

  async pull(offset: number, into: Uint8Array): Promise<void> {
    const own = this.immediateData.subarray(offset, offset + into.length);
    into.set(own);
    if (own.length === into.length) return;
    await this.mover.getData(this, offset + own.length, into.subarray(own.length));
  }

  push(offset: number, from: Uint8Array): Promise<void> {
    return this.mover.putData(this, offset, from);
  }

  /** Resolves when the task has ended in any way. */
  get ended(): Promise<void> {
    if (this.hasEnded) return Promise.resolve();
    return new Promise((resolve) => this.waiters.push(resolve));
  }

  /** Ends the task. */
  end(): void {
    this.hasEnded = true;
    for (const resolve of this.waiters) resolve();
  }
}

function joined(first: Uint8Array, second: Uint8Array): Uint8Array {
  const whole = new Uint8Array(first.length + second.length);
  whole.set(first);
  whole.set(second, first.length);
  return whole;
}

type CommandPdu = Extract<InitiatorPdu, { type: 'scsiCommand' }>;

/** ASC and ASCQ of an internal target failure. */
const INTERNAL_TARGET_FAILURE = { key: SENSE_KEY.HARDWARE_ERROR, asc: 0x44, ascq: 0 };
const NO_SENSE = new Uint8Array(0);

export interface TaskSetParts {
  readonly initiatorPort: string;
  readonly device: DeviceServer;
  readonly mover: Datamover;
  readonly responder: Responder;
  readonly negotiated: Negotiated;
  /** Limit of immediate commands in flight; they have no window. */
  readonly maxImmediate: number;
  /** A command that took a CmdSN has ended. */
  readonly onAnswered: () => void;
  /** The device server has failed without a status: a bug of this program. */
  readonly onFailure: (error: unknown) => void;
}

export class TaskSet {
  private readonly tasks = new Map<number, Task>();
  private immediate = 0;
  private isClosed = false;

  constructor(private readonly parts: TaskSetParts) {}

  /** Starts a command in its turn. @throws ProtocolFault */
  start(pdu: CommandPdu, advertised: AdvertisedBuffers | undefined): void {
    this.check(pdu);
    const { initiatorPort, mover, device } = this.parts;
    const { header, ahs, data: immediateData } = pdu;
    const { extendedCdb } = ahs;
    const parts = { initiatorPort, header, extendedCdb, immediateData, advertised };
    const task = new Task(parts, mover);
    this.tasks.set(task.initiatorTaskTag, task);
    if (!task.takesCmdSn) this.immediate++;
    this.run(task, device).catch(this.parts.onFailure);
  }

  find(initiatorTaskTag: number): Task | undefined {
    return this.tasks.get(initiatorTaskTag);
  }

  /** Ends a task without an answer; resolves when it has no transfer in flight. */
  async abort(task: Task, why: Error): Promise<void> {
    task.abort.abort(why);
    await task.ended;
  }

  /** Ends all tasks without answers, for good. */
  async close(why: Error): Promise<void> {
    this.isClosed = true;
    await Promise.all([...this.tasks.values()].map((task) => this.abort(task, why)));
  }

  private async run(task: Task, device: DeviceServer): Promise<void> {
    let result: DeviceResult | undefined;
    try {
      result = await device.execute(task);
    } catch (error) {
      if (!task.signal.aborted) this.parts.onFailure(error);
    }
    this.tasks.delete(task.initiatorTaskTag);
    if (task.takesCmdSn) this.parts.onAnswered();
    else this.immediate--;
    const isAborted = result === undefined ? task.signal.aborted : result.isAborted;
    task.end();
    if (!this.isClosed && !isAborted) this.respond(task, result);
  }

  private respond(task: Task, result: DeviceResult | undefined): void {
    const { responder } = this.parts;
    const { initiatorTaskTag } = task;
    if (result === undefined) {
      const sense = emitFixedSense(INTERNAL_TARGET_FAILURE);
      const status = SCSI_STATUS.CHECK_CONDITION;
      const values = { initiatorTaskTag, response: SCSI_RESPONSE_CODE.COMPLETED, status };
      responder.send('scsiResponse', values, emitSenseSegment(sense), task);
      return;
    }
    const { status, sense, residual } = result;
    const values = {
      initiatorTaskTag,
      response: SCSI_RESPONSE_CODE.COMPLETED,
      status,
      overflow: residual.kind === 'overflow',
      underflow: residual.kind === 'underflow',
      residualCount: residual.kind === 'none' ? 0 : residual.bytes,
    };
    const data = sense.length === 0 ? NO_SENSE : emitSenseSegment(sense.subarray(0, SENSE_BYTES));
    responder.send('scsiResponse', values, data, task);
  }

  private check({ header, ahs, data }: CommandPdu): void {
    const { initiatorTaskTag, read, write, attribute, final } = header;
    const { negotiated } = this.parts;
    if (initiatorTaskTag === RESERVED_TAG) throw invalid('the task tag is reserved');
    if (this.tasks.has(initiatorTaskTag)) {
      const why = `task tag ${initiatorTaskTag} is in use`;
      throw new ProtocolFault(REJECT_REASON.TASK_IN_PROGRESS, why, 'goes on');
    }
    if (attribute >= ATTRIBUTE_COUNT) {
      throw invalid(`the task attribute is ${attribute}, must be 0 to ${ATTRIBUTE_COUNT - 1}`);
    }
    if ((read && write) || ahs.bidirectionalReadLength !== undefined) {
      throw invalid('a command reads or writes; both at once is not supported');
    }
    if (!final) throw fault('unsolicited data is announced, and InitialR2T is Yes');
    const most = write
      ? Math.min(header.expectedDataTransferLength, negotiated.firstBurstLength)
      : 0;
    if (data.length > 0 && !negotiated.immediateData) {
      throw fault(`${data.length} bytes of immediate data, and ImmediateData is No`);
    }
    if (data.length > most) {
      throw fault(`${data.length} bytes of immediate data, at most ${most} are allowed`);
    }
    if (header.immediate && this.immediate >= this.parts.maxImmediate) {
      const why = `more than ${this.parts.maxImmediate} immediate commands`;
      throw new ProtocolFault(REJECT_REASON.IMMEDIATE_COMMAND_REJECT, why, 'goes on');
    }
  }
}

/**
 * Limit of sense data: full feature receives of ib_iser have 128 bytes for data, two of them for
 * the length.
 */
const SENSE_BYTES = 126;

function invalid(why: string): ProtocolFault {
  return new ProtocolFault(REJECT_REASON.INVALID_PDU_FIELD, why, 'goes on');
}

function fault(why: string): ProtocolFault {
  return new ProtocolFault(REJECT_REASON.PROTOCOL_ERROR, why, 'ends');
}

export type TaskResponse = (typeof TASK_RESPONSE)[keyof typeof TASK_RESPONSE];

/**
 * Functions by code: of the device server, of this session, or the response to an unsupported one.
 */
const FUNCTIONS: Readonly<Record<number, ManagementFunction | 'ABORT TASK' | TaskResponse>> = {
  [TASK_FUNCTION.ABORT_TASK]: 'ABORT TASK',
  [TASK_FUNCTION.ABORT_TASK_SET]: 'ABORT TASK SET',
  [TASK_FUNCTION.CLEAR_ACA]: 'CLEAR ACA',
  [TASK_FUNCTION.CLEAR_TASK_SET]: 'CLEAR TASK SET',
  [TASK_FUNCTION.LOGICAL_UNIT_RESET]: 'LOGICAL UNIT RESET',
  [TASK_FUNCTION.TARGET_WARM_RESET]: 'TARGET WARM RESET',
  [TASK_FUNCTION.TARGET_COLD_RESET]: 'TARGET COLD RESET',
  // Reassignment is for error recovery level 2.
  [TASK_FUNCTION.TASK_REASSIGN]: TASK_RESPONSE.REASSIGN_NOT_SUPPORTED,
};

const RESPONSES: Readonly<Record<ManagementAnswer, TaskResponse>> = {
  'FUNCTION COMPLETE': TASK_RESPONSE.COMPLETE,
  'INCORRECT LOGICAL UNIT NUMBER': TASK_RESPONSE.LUN_DOES_NOT_EXIST,
  'FUNCTION NOT SUPPORTED': TASK_RESPONSE.NOT_SUPPORTED,
};

export interface ManagementParts {
  readonly initiatorPort: string;
  readonly device: DeviceServer;
  readonly tasks: TaskSet;
  /**
   * Counts the command with this CmdSN as received, if it was not.
   * @returns false if it was, or if no command may have that number yet
   */
  readonly skip: (cmdSn: number) => boolean;
}

/** @returns the response, once the function is complete */
export async function manage(
  request: Pick<TaskManagementRequest, 'function' | 'lun' | 'referencedTaskTag' | 'refCmdSn'>,
  parts: ManagementParts,
): Promise<TaskResponse> {
  const func = FUNCTIONS[request.function] ?? TASK_RESPONSE.NOT_SUPPORTED;
  if (typeof func === 'number') return func;
  if (func !== 'ABORT TASK') {
    return RESPONSES[await parts.device.manage(func, parts.initiatorPort, request.lun)];
  }
  const task = parts.tasks.find(request.referencedTaskTag);
  if (task === undefined) {
    // One that has not come never will: its CmdSN must not be waited for (RFC 7143, 11.6.1).
    const isSkipped = parts.skip(request.refCmdSn);
    return isSkipped ? TASK_RESPONSE.COMPLETE : TASK_RESPONSE.TASK_DOES_NOT_EXIST;
  }
  await parts.tasks.abort(task, new Error('ABORT TASK'));
  return TASK_RESPONSE.COMPLETE;
}
