/** Contract between a session and SCSI: the device server and task manager of SAM-5. */
import type { CommandAbort } from './command-abort.js';

/** A command, with what moves its data. */
export interface DeviceCommand {
  /** The I_T nexus: name and ISID of the initiator port. */
  readonly initiatorPort: string;
  /** Eight bytes. */
  readonly lun: Uint8Array;
  /** 16 bytes, more with an extended CDB. */
  readonly cdb: Uint8Array;
  readonly attribute: 'SIMPLE' | 'ORDERED' | 'HEAD OF QUEUE' | 'ACA';
  /** Bytes that the initiator is ready to send, and has room for. */
  readonly dataOutBytes: number;
  readonly dataInBytes: number;
  pull(offset: number, into: Uint8Array): Promise<void>;
  push(offset: number, from: Uint8Array): Promise<void>;
  /** Aborts this command alone: the session uses it, or the device server for another function. */
  readonly abort: Pick<CommandAbort, 'signal' | 'abort'>;
}

export interface DeviceResult {
  readonly status: number;
  /** Without a length in front. */
  readonly sense: Uint8Array;
  readonly residual: {
    readonly kind: 'none' | 'overflow' | 'underflow';
    readonly bytes: number;
  };
  /** No response may be sent. */
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
  /** Never rejects for what a command asks; that is a status. */
  execute(command: DeviceCommand): Promise<DeviceResult>;
  /** Resolves when the commands that it concerns have ended. */
  manage(
    what: ManagementFunction,
    initiatorPort: string,
    lun: Uint8Array,
  ): Promise<ManagementAnswer>;
  /** A session begins: a nexus without tasks. */
  nexusOpened(initiatorPort: string): void;
  /** The session has ended (SAM-5 6.3.4). Resolves when none of its commands is in progress. */
  nexusLost(initiatorPort: string): Promise<void>;
}
