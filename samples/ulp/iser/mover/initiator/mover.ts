/**
 * Contract of a mover: it moves PDUs and data between an initiator's session and a target, over
 * iSER or TCP.
 */
import type { TargetPdu } from '../../wire/index.js';
import type { IscsiError, OutgoingPdu, ScsiTask } from '../../session/initiator/index.js';

export interface InitiatorMover {
  /** Sends a PDU behind all that was sent before. */
  send(pdu: OutgoingPdu): void;
  /** The PDUs of the full feature phase may come from now on. */
  prepare(): void;
  /**
   * The target reaches the memory of a task no more.
   * @param transferredBytes of `dataIn` that count; they are in it when this returns
   */
  release(task: ScsiTask, transferredBytes: number): void;
  /** Memory that commands move without a copy, where there is such; else any. */
  allocate(lengthBytes: number): Uint8Array;
  /** Ends the connection: at once, or behind what has been sent. Nothing is told afterwards. */
  close(how: 'graceful' | 'abrupt'): void;
}

/** Events of a mover. */
export interface MoverHost {
  onConnected(): void;
  onPdu(pdu: TargetPdu): void;
  /** The connection could not be made, or is gone; told once. */
  onLost(error: IscsiError): void;
}

/** Makes a connection to a portal. */
export type MakeMover = (portal: Portal, host: MoverHost) => InitiatorMover;

export interface Portal {
  /** An IP address. */
  readonly address: string;
  readonly port: number;
}
