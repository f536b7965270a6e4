/** The commands of a session that have not been answered. */
import {
  emitFixedSense,
  emitSenseSegment,
  type InitiatorPdu,
  REJECT_REASON,
  RESERVED_TAG,
  SCSI_RESPONSE_CODE,
  SCSI_STATUS,
  SENSE_KEY,
} from '../../wire/index.js';
import type { AdvertisedBuffers, Datamover } from './datamover.js';
import type { DeviceResult, DeviceServer } from './device-server.js';
import type { Negotiated } from './login/operational.js';
import { ProtocolFault } from './protocol-fault.js';
import type { Responder } from './responder.js';
import { ATTRIBUTE_COUNT, Task } from './task.js';

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
  /** Immediate commands under way at most; they have no window. */
  readonly maxImmediate: number;
  /** A command that took a CmdSN has ended. */
  readonly onAnswered: () => void;
  /** The device server has failed in a way that is no status: a mistake of this program. */
  readonly onFailure: (error: unknown) => void;
}

export class TaskSet {
  private readonly tasks = new Map<number, Task>();
  private immediate = 0;
  private isClosed = false;

  constructor(private readonly parts: TaskSetParts) {}

  get size(): number {
    return this.tasks.size;
  }

  /**
   * A command has come, and its turn.
   * @throws ProtocolFault
   */
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

  /** Ends one without an answer; resolves when nothing of it is under way. */
  async abort(task: Task, why: Error): Promise<void> {
    task.abort.abort(why);
    await task.ended;
  }

  /** Ends all, without answers, for good. */
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

/** Full feature receives of ib_iser have 128 bytes for data, two of them for the length. */
const SENSE_BYTES = 126;

function invalid(why: string): ProtocolFault {
  return new ProtocolFault(REJECT_REASON.INVALID_PDU_FIELD, why, 'goes on');
}

function fault(why: string): ProtocolFault {
  return new ProtocolFault(REJECT_REASON.PROTOCOL_ERROR, why, 'ends');
}
