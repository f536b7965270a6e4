/**
 * Contract between a target's session and its transport: the operational primitives of the
 * Datamover Architecture, with their names (RFC 5047, section 6). One mover serves iSER, another
 * TCP.
 */
import type { TaskSignal } from './command-abort.js';
import type { Negotiated } from './login/operational.js';

/** Memory that the initiator has opened for one command, over iSER: names of RFC 7145, 9.2. */
export interface AdvertisedBuffers {
  /** Source of a write's data, after the part that was sent with the command. */
  readonly write: AdvertisedBuffer | undefined;
  /** Destination of a read's data. */
  readonly read: AdvertisedBuffer | undefined;
}

export interface AdvertisedBuffer {
  readonly stag: number;
  readonly base: bigint;
}

/** A command as a mover sees it. */
export interface TransferTask {
  readonly initiatorTaskTag: number;
  /** Eight bytes, as received. */
  readonly lun: Uint8Array;
  /** Bytes of data-out that were sent with the command. */
  readonly unsolicitedBytes: number;
  readonly advertised: AdvertisedBuffers | undefined;
  /** Fires when the task is aborted. */
  readonly signal: TaskSignal;
}

/** The 48 bytes of a header; the mover does not keep them. */
export type Header = Uint8Array;

export interface Datamover {
  /** Sends a control PDU after all earlier ones. @param task the task that it answers */
  sendControl(header: Header, data: Uint8Array, task?: TransferTask): void;
  /**
   * Moves data-in: copies `from` into the initiator's buffer, from `offset` on.
   * @returns resolves when `from` may be reused; rejects when the connection ends
   */
  putData(task: TransferTask, offset: number, from: Uint8Array): Promise<void>;
  /**
   * Moves data-out: fills `into` from the initiator's buffer, from `offset` on. It does not request
   * bytes that were sent with the command.
   * @returns rejects when the connection or the task ends; `into` is not written afterwards
   */
  getData(task: TransferTask, offset: number, into: Uint8Array): Promise<void>;
  /**
   * Begins full feature phase after the login response that is sent next (Notice_Key_Values and
   * Enable_Datamover in one).
   */
  enable(negotiated: Negotiated, numbers: SequenceNumbers): void;
  /** Sets a new limit for data segments to the initiator. */
  limitSegments(sendDataSegmentLength: number): void;
  /** Closes the connection after everything was sent; `transportEnded` of the session follows. */
  terminate(): void;
}

/** Numbers that each header to the initiator carries. */
export interface SequenceNumbers {
  /** StatSN of the next response; a PDU without a status carries it without consuming it. */
  readonly statSn: number;
  readonly expCmdSn: number;
  readonly maxCmdSn: number;
}
