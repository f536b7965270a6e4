/**
 * Contract of a mover: it moves PDUs and data between an initiator's session and a target, over
 * iSER or TCP.
 */
import type { TargetPdu } from '../../wire/index.js';
import type { IscsiError, OutgoingPdu, ScsiTask } from '../../session/initiator/index.js';

export interface InitiatorMover {
  /** Sends a PDU after all earlier ones. */
  send(pdu: OutgoingPdu): void;
  /** PDUs of the full feature phase may arrive from now on. */
  prepare(): void;
  /**
   * Ends the target's access to the memory of a task.
   * @param transferredBytes valid bytes of `dataIn`; they are in it when this returns
   */
  release(task: ScsiTask, transferredBytes: number): void;
  /**
   * Allocates memory that commands transfer without a copy, if the mover has such; otherwise any.
   */
  allocate(lengthBytes: number): Uint8Array;
  /** Ends the connection: immediately, or after everything was sent. No events follow. */
  close(how: 'graceful' | 'abrupt'): void;
}

/** Events of a mover. */
export interface MoverHost {
  onConnected(): void;
  onPdu(pdu: TargetPdu): void;
  /** The connection could not be established, or is lost; called once. */
  onLost(error: IscsiError): void;
}

/** Makes a connection to a portal. */
export type MakeMover = (portal: Portal, host: MoverHost) => InitiatorMover;

export interface Portal {
  /** An IP address. */
  readonly address: string;
  readonly port: number;
}
