/** Outstanding work of an initiator: SCSI commands, and requests of iSCSI itself. */
import type { Sense, TargetPdu } from '../../wire/index.js';
import type { IscsiError } from './iscsi-error.js';

/** A SCSI command, from the caller to its outcome. */
export interface ScsiCommandRequest {
  /** Eight bytes, SAM-5 4.7. */
  readonly lun: Uint8Array;
  /** At most 16 bytes. */
  readonly cdb: Uint8Array;
  /** Receives the target's data, which fills it or less. */
  readonly dataIn?: Uint8Array | undefined;
  /** Data to send; it must not change until the command ends. */
  readonly dataOut?: Uint8Array | undefined;
  /** `TASK_ATTRIBUTE`; default SIMPLE. */
  readonly attribute?: number | undefined;
  /** From its sending on; then it is aborted. Default Infinity. */
  readonly timeoutMs?: number | undefined;
  /** Called once. */
  readonly done: (outcome: ScsiOutcome) => void;
}

/** The outcome of a SCSI command. */
export type ScsiOutcome =
  | {
      readonly kind: 'answered';
      /** `SCSI_STATUS`. */
      readonly status: number;
      readonly sense: Sense | undefined;
      /** Bytes of `dataIn` or `dataOut` that have been moved. */
      readonly transferredBytes: number;
    }
  /** The session has ended first. What was sent may have been done. */
  | { readonly kind: 'unanswered'; readonly wasSent: boolean; readonly error: IscsiError }
  /** The target has confirmed that it is gone, or it was never sent. */
  | { readonly kind: 'aborted'; readonly error: IscsiError }
  /** The target refuses the PDU, or could not carry the command out. */
  | { readonly kind: 'refused'; readonly error: IscsiError };

/** A SCSI command that waits for room, or has a tag. */
export interface ScsiTask {
  readonly kind: 'scsi';
  readonly request: ScsiCommandRequest;
  /** The reserved tag until it is sent. */
  tag: number;
  cmdSn: number;
  deadlineMs: number;
  /** Data-In that has come, in bytes; over iSER none does. */
  receivedBytes: number;
  nextDataSn: number;
  nextR2tSn: number;
  /** An abort is under way, for this reason. */
  aborting: IscsiError | undefined;
}

/** A request of iSCSI: NOP-Out, task management, text, logout. */
export interface OtherRequest {
  readonly kind: 'other';
  /** The PDU that answers it. */
  readonly answer: TargetPdu['type'];
  tag: number;
  deadlineMs: number;
  /** @returns false while more of the answer is to come: the tag stays in use */
  readonly onAnswer: (pdu: TargetPdu) => boolean;
  /** The session has ended first, or the target has rejected it. */
  readonly onEnd: (error: IscsiError) => void;
}

export type Task = ScsiTask | OtherRequest;

/** A PDU to be sent. */
export interface OutgoingPdu {
  /** 48 bytes, complete. */
  readonly header: Uint8Array;
  readonly data: Uint8Array;
  /** The SCSI command of this PDU, whose memory is opened to the target over iSER. */
  readonly task?: ScsiTask;
  /** Bytes of a write to send without an R2T; the target fetches the rest. */
  readonly unsolicitedBytes?: number;
}

export const NO_DATA: Uint8Array = new Uint8Array(0);

/** A SCSI command as a task, before it is sent. */
export function newTask(request: ScsiCommandRequest): ScsiTask {
  return {
    kind: 'scsi',
    request,
    tag: 0xffff_ffff,
    cmdSn: 0,
    deadlineMs: Infinity,
    receivedBytes: 0,
    nextDataSn: 0,
    nextR2tSn: 0,
    aborting: undefined,
  };
}
