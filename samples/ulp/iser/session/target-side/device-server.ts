/** Contract between a session and SCSI: the device server and task manager of SAM-5. */
import type { CommandAbort } from './command-abort.js';

/** A command, with functions to move its data. */
export interface DeviceCommand {
  /** The I_T nexus: name and ISID of the initiator port. */
  readonly initiatorPort: string;
  /** Eight bytes. */
  readonly lun: Uint8Array;
  /** 16 bytes, more with an extended CDB. */
  readonly cdb: Uint8Array;
  readonly attribute: 'SIMPLE' | 'ORDERED' | 'HEAD OF QUEUE' | 'ACA';
  /** Bytes that the initiator is ready to send, and to receive. */
  readonly dataOutBytes: number;
  readonly dataInBytes: number;
  pull(offset: number, into: Uint8Array): Promise<void>;
  push(offset: number, from: Uint8Array): Promise<void>;
  /** Aborts this command alone: the session uses it, or the device server for another function. */
  readonly abort: Pick<CommandAbort, 'signal' | 'abort'>;
}

export interface DeviceResult {
  readonly status: number;
  /** Sense data without a length field. */
  readonly sense: Uint8Array;
  readonly residual: {
    readonly kind: 'none' | 'overflow' | 'underflow';
    readonly bytes: number;
  };
  /** True if no response may be sent. */
  readonly isAborted: boolean;
}

export type ManagementFunction =
  | 'ABORT TASK SET'
  | 'CLEAR ACA'
  | 'CLEAR TASK SET'
  | 'LOGICAL UNIT RESET'
  | 'TARGET WARM RESET'
  | 'TARGET COLD RESET';

export type ManagementAnswer =
  'FUNCTION COMPLETE' | 'INCORRECT LOGICAL UNIT NUMBER' | 'FUNCTION NOT SUPPORTED';

export interface DeviceServer {
  /** Executes a command. It never rejects because of the command: failures are a status. */
  execute(command: DeviceCommand): Promise<DeviceResult>;
  /** Resolves when the affected commands have ended. */
  manage(
    what: ManagementFunction,
    initiatorPort: string,
    lun: Uint8Array,
  ): Promise<ManagementAnswer>;
  /** A session has begun: a nexus without tasks. */
  nexusOpened(initiatorPort: string): void;
  /** The session has ended (SAM-5 6.3.4). Resolves when none of its commands is in progress. */
  nexusLost(initiatorPort: string): Promise<void>;
}
