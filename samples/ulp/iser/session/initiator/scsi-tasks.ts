/** SCSI commands of a session: sends them as the window allows, moves data, matches answers. */
import {
  dataOut,
  type DataIn,
  nameOf,
  type R2t,
  readSenseSegment,
  RESERVED_TAG,
  SCSI_RESPONSE_CODE,
  scsiCommand,
  type ScsiResponse,
  TASK_ATTRIBUTE,
} from '../../wire/index.js';
import type { CommandWindow } from './command-window.js';
import { IscsiError, protocolError } from './iscsi-error.js';
import type { SessionParameters } from './parameters.js';
import type { Tags } from './tags.js';
import {
  NO_DATA,
  type OutgoingPdu,
  type ScsiCommandRequest,
  type ScsiOutcome,
  type ScsiTask,
  type Task,
} from './task.js';
import { piecesOf, planWrite } from './write-plan.js';

export interface ScsiTasksHost {
  readonly parameters: SessionParameters;
  readonly window: CommandWindow;
  readonly tags: Tags<Task>;
  now(): number;
  send(pdu: OutgoingPdu): void;
  /** The task has ended: its memory is closed to the target, and what came is in `dataIn`. */
  release(task: ScsiTask, transferredBytes: number): void;
}

export class ScsiTasks {
  private readonly queue: ScsiTask[] = [];
  private head = 0;

  constructor(private readonly host: ScsiTasksHost) {}

  /** Commands that wait for room. */
  get waiting(): number {
    return this.queue.length - this.head;
  }

  submit(task: ScsiTask): void {
    this.queue.push(task);
  }

  /** Sends what there is room for. */
  pump(): void {
    const { window, tags } = this.host;
    while (this.head < this.queue.length && window.room > 0) {
      const task = this.queue[this.head]!;
      const tag = tags.take(task);
      if (tag === undefined) return;
      this.shift();
      task.tag = tag;
      task.cmdSn = window.take();
      task.deadlineMs = this.host.now() + (task.request.timeoutMs ?? Infinity);
      this.send(task);
    }
  }

  /** Takes a command that has not been sent out of the queue; false when it has been. */
  withdraw(task: ScsiTask): boolean {
    const at = this.queue.indexOf(task, this.head);
    if (at < 0) return false;
    this.queue.splice(at, 1);
    return true;
  }

  /** The session has ended: commands that have not been sent, in order. */
  drain(): ScsiTask[] {
    const rest = this.queue.slice(this.head);
    this.queue.length = 0;
    this.head = 0;
    return rest;
  }

  private shift(): void {
    this.head++;
    // Now and then, so that a long queue costs no move for each command.
    if (this.head < 256) return;
    this.queue.splice(0, this.head);
    this.head = 0;
  }

  private send(task: ScsiTask): void {
    const { parameters, window } = this.host;
    const { lun, cdb, dataIn, dataOut: out = NO_DATA, attribute } = task.request;
    const { immediateBytes, unsolicitedBytes } = planWrite(out.length, parameters);
    const header = scsiCommand.make({
      final: unsolicitedBytes === 0,
      read: dataIn !== undefined,
      write: out.length > 0,
      attribute: attribute ?? TASK_ATTRIBUTE.SIMPLE,
      dataSegmentLength: immediateBytes,
      lun,
      initiatorTaskTag: task.tag,
      expectedDataTransferLength: dataIn?.length ?? out.length,
      cmdSn: task.cmdSn,
      expStatSn: window.expStatSn,
      cdb,
    }).bytes;
    this.host.send({
      header,
      data: immediateBytes === 0 ? NO_DATA : out.subarray(0, immediateBytes),
      task,
      unsolicitedBytes: immediateBytes + unsolicitedBytes,
    });
    if (unsolicitedBytes > 0) {
      this.sendBurst(task, immediateBytes, unsolicitedBytes, RESERVED_TAG);
    }
  }

  private sendBurst(task: ScsiTask, offset: number, length: number, transferTag: number): void {
    const { parameters, window } = this.host;
    const { lun, dataOut: out = NO_DATA } = task.request;
    for (const piece of piecesOf(offset, length, parameters.maxSendDataSegment)) {
      const { offsetBytes, lengthBytes } = piece;
      const header = dataOut.make({
        final: piece.isFinal,
        dataSegmentLength: lengthBytes,
        lun,
        initiatorTaskTag: task.tag,
        targetTransferTag: transferTag,
        expStatSn: window.expStatSn,
        dataSn: piece.dataSn,
        bufferOffset: offsetBytes,
      }).bytes;
      this.host.send({ header, data: out.subarray(offsetBytes, offsetBytes + lengthBytes) });
    }
  }

  /** @throws IscsiError for data that the command has no room for, or out of order */
  onDataIn(header: DataIn, data: Uint8Array): void {
    if (this.host.parameters.isIser) throw protocolError('Data-In comes over iSER');
    const task = this.taskOf(header.initiatorTaskTag, 'Data-In');
    const { dataIn } = task.request;
    const { bufferOffset, dataSn } = header;
    if (dataIn === undefined) throw protocolError('Data-In comes for a command that reads nothing');
    if (dataSn !== task.nextDataSn) {
      throw protocolError(`DataSN is ${dataSn}, must be ${task.nextDataSn}`);
    }
    if (bufferOffset !== task.receivedBytes || bufferOffset + data.length > dataIn.length) {
      throw protocolError(
        `Data-In of ${data.length} bytes at ${bufferOffset}, must be at ${task.receivedBytes} ` +
          `and end at ${dataIn.length} at most`,
      );
    }
    dataIn.set(data, bufferOffset);
    task.receivedBytes += data.length;
    task.nextDataSn++;
    if (!header.hasStatus) return;
    if (!header.final) throw protocolError('a status comes in a Data-In that is not the last');
    this.host.window.takeStatus(header.statSn);
    this.finish(task, {
      kind: 'answered',
      status: header.status,
      sense: undefined,
      transferredBytes: task.receivedBytes,
    });
  }

  /** @throws IscsiError for what the command has no data for */
  onR2t(header: R2t): void {
    const { parameters } = this.host;
    if (parameters.isIser) throw protocolError('R2T comes over iSER');
    const task = this.taskOf(header.initiatorTaskTag, 'R2T');
    const { bufferOffset, desiredDataTransferLength: length, r2tSn, targetTransferTag } = header;
    const total = task.request.dataOut?.length ?? 0;
    if (r2tSn !== task.nextR2tSn) {
      throw protocolError(`R2TSN is ${r2tSn}, must be ${task.nextR2tSn}`);
    }
    if (targetTransferTag === RESERVED_TAG) throw protocolError('R2T has the reserved tag');
    const most = Math.min(parameters.maxBurstLength, total - bufferOffset);
    if (length < 1 || length > most) {
      throw protocolError(`R2T wants ${length} bytes at ${bufferOffset}, must be 1 to ${most}`);
    }
    task.nextR2tSn++;
    this.sendBurst(task, bufferOffset, length, targetTransferTag);
  }

  /** @throws IscsiError, WireError for an answer that cannot be */
  onResponse(header: ScsiResponse, data: Uint8Array): void {
    const task = this.taskOf(header.initiatorTaskTag, 'SCSI Response');
    this.host.window.takeStatus(header.statSn);
    const { response, status } = header;
    if (response !== SCSI_RESPONSE_CODE.COMPLETED) {
      const name = nameOf(SCSI_RESPONSE_CODE, response);
      const message = `the target could not carry the command out: ${name}`;
      const error = new IscsiError('ISCSI_REJECTED', message, { status: response });
      this.finish(task, { kind: 'refused', error });
      return;
    }
    const { dataIn, dataOut: out } = task.request;
    const expected = dataIn?.length ?? out?.length ?? 0;
    const missing = header.underflow ? header.residualCount : 0;
    if (missing > expected) {
      throw protocolError(`the residual is ${missing}, must be at most ${expected}`);
    }
    const sense = readSenseSegment(data);
    // Over TCP what has come is known; over iSER the target has put it there, and tells.
    const isCounted = dataIn !== undefined && !this.host.parameters.isIser;
    const transferredBytes = isCounted ? task.receivedBytes : expected - missing;
    this.finish(task, { kind: 'answered', status, sense, transferredBytes });
  }

  /** The outcome of a command that has a tag. */
  finish(task: ScsiTask, outcome: ScsiOutcome): void {
    this.host.tags.release(task.tag);
    this.host.release(task, outcome.kind === 'answered' ? outcome.transferredBytes : 0);
    task.request.done(outcome);
  }

  private taskOf(tag: number, what: string): ScsiTask {
    const task = this.host.tags.get(tag);
    if (task?.kind === 'scsi') return task;
    throw protocolError(`${what} has the tag 0x${tag.toString(16)}, which no command has`);
  }
}

/** @throws IscsiError for a command that cannot be sent */
export function checkRequest(request: ScsiCommandRequest): void {
  const { lun, cdb, dataIn, dataOut: out } = request;
  if (lun.length !== 8) throw refuse(`LUN has ${lun.length} bytes, must have 8`);
  if (cdb.length < 1 || cdb.length > 16) {
    throw refuse(`CDB has ${cdb.length} bytes, must have 1 to 16: no additional headers are sent`);
  }
  if (dataIn !== undefined && out !== undefined) {
    throw refuse('a command that writes and reads at a time is not supported');
  }
  const longest = 2 ** 32 - 1;
  const bytes = (dataIn ?? out)?.length ?? 0;
  if (bytes > longest) throw refuse(`data has ${bytes} bytes, must have at most ${longest}`);
}

function refuse(what: string): IscsiError {
  return new IscsiError('ISCSI_INVALID_PARAMETER', what);
}
