/** What a session asks of SCSI: the device server and task manager of SAM-5. */
import type { TASK_RESPONSE } from '../../wire/index.js';

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
  /** Fires when the command is to end without an answer. */
  readonly signal: AbortSignal;
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

export interface DeviceServer {
  /** Never rejects for what a command asks; that is a status. */
  execute(command: DeviceCommand): Promise<DeviceResult>;
  /** Resolves when the tasks that it concerns have ended, to a value of `TASK_RESPONSE`. */
  manage(
    func: ManagementFunction,
    initiatorPort: string,
    lun: Uint8Array,
  ): Promise<(typeof TASK_RESPONSE)[keyof typeof TASK_RESPONSE]>;
  /** The I_T nexus is lost (SAM-5 6.3.4): its session has ended, and all of its tasks. */
  nexusLost(initiatorPort: string): void;
}
