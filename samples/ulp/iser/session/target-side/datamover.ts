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
  /** Eight bytes, as they came. */
  readonly lun: Uint8Array;
  /** Bytes of data-out that came along with the command. */
  readonly unsolicitedBytes: number;
  readonly advertised: AdvertisedBuffers | undefined;
  /** Fires when the task is aborted. */
  readonly signal: TaskSignal;
}

/** The 48 bytes of a header, which the mover does not keep. */
export type Header = Uint8Array;

export interface Datamover {
  /** Sends a control PDU behind all that was sent before. @param task the one that it answers */
  sendControl(header: Header, data: Uint8Array, task?: TransferTask): void;
  /**
   * Moves data-in: `from` goes into the initiator's buffer, from `offset` on.
   * @returns resolves when `from` is the caller's again; rejects when the connection ends
   */
  putData(task: TransferTask, offset: number, from: Uint8Array): Promise<void>;
  /**
   * Moves data-out: `into` is filled from the initiator's buffer, from `offset` on. The bytes that
   * came along with the command are not asked for.
   * @returns rejects when the connection or the task ends; `into` is not written afterwards
   */
  getData(task: TransferTask, offset: number, into: Uint8Array): Promise<void>;
  /**
   * Full feature phase begins behind the login response that is sent next (Notice_Key_Values and
   * Enable_Datamover in one).
   */
  enable(negotiated: Negotiated, numbers: SequenceNumbers): void;
  /** The initiator takes longer data segments, or shorter ones, from now on. */
  limitSegments(sendDataSegmentLength: number): void;
  /** Ends the connection behind what has been sent; `transportEnded` of the session follows. */
  terminate(): void;
}

/** Numbers that each header toward the initiator carries. */
export interface SequenceNumbers {
  /** StatSN of the next response; a PDU without a status shows it and leaves it. */
  readonly statSn: number;
  readonly expCmdSn: number;
  readonly maxCmdSn: number;
}
