/** Contract between a transport and the device server: a command and its result (SAM-5 5.4.1). */
import type { Abort } from '../../../block/index.js';

/** SAM-5 8.6; untagged commands of iSCSI are `SIMPLE`. */
export type TaskAttribute = 'SIMPLE' | 'ORDERED' | 'HEAD OF QUEUE' | 'ACA';

/** SAM-5 5.3.1. */
export const ScsiStatus = {
  GOOD: 0x00,
  CHECK_CONDITION: 0x02,
  CONDITION_MET: 0x04,
  BUSY: 0x08,
  RESERVATION_CONFLICT: 0x18,
  TASK_SET_FULL: 0x28,
  ACA_ACTIVE: 0x30,
  TASK_ABORTED: 0x40,
} as const;
export type ScsiStatus = (typeof ScsiStatus)[keyof typeof ScsiStatus];

export interface ScsiCommand {
  /**
   * The initiator port by its SCSI name: `iqn.example,i,0x00023d000001` (RFC 7143 4.4.1). Because
   * this target has one port, it is also the I_T nexus.
   */
  readonly initiatorPort: string;
  /** Eight bytes, SAM-5 4.7. */
  readonly lun: Uint8Array;
  /** The CDB as received: 16 bytes in iSCSI, also for shorter ones; longer with an AHS. */
  readonly cdb: Uint8Array;
  readonly attribute: TaskAttribute;
  /** Bytes that the initiator is ready to send; 0 without data-out. */
  readonly dataOutBytes: number;
  /** Bytes that the initiator has room for; 0 without data-in. */
  readonly dataInBytes: number;
  /**
   * Fetches data-out: fills `into` from `offset` on, within `dataOutBytes`. Called with ascending
   * offsets, one at a time. Rejects if the connection or the command ends.
   */
  pull(offset: number, into: Uint8Array): Promise<void>;
  /**
   * Delivers data-in, within `dataInBytes`, with ascending offsets, one at a time. The caller may
   * reuse `from` when the promise resolves.
   */
  push(offset: number, from: Uint8Array): Promise<void>;
  /**
   * Aborts this command alone. The transport aborts it for ABORT TASK, the device for the functions
   * of `manage` and a lost nexus; `pull` and `push` should reject then.
   */
  readonly abort: Abort;
}

/**
 * Difference between the command's own length and the length that the initiator expected (RFC 7143
 * 11.4.5).
 */
export interface Residual {
  readonly kind: 'none' | 'overflow' | 'underflow';
  readonly bytes: number;
}

export interface ScsiResult {
  readonly status: ScsiStatus;
  /** Sense data without iSCSI's length field; empty unless CHECK CONDITION. */
  readonly sense: Uint8Array;
  readonly residual: Residual;
  /** The task was aborted by a management function or its signal: no response may be sent. */
  readonly isAborted: boolean;
}

/** Functions of RFC 7143 11.5.1, without reassignment, which needs error recovery level 2. */
export type TaskManagementFunction =
  | 'ABORT TASK SET'
  | 'CLEAR ACA'
  | 'CLEAR TASK SET'
  | 'LOGICAL UNIT RESET'
  | 'TARGET WARM RESET'
  | 'TARGET COLD RESET';

export type TaskManagementAnswer =
  'FUNCTION COMPLETE' | 'INCORRECT LOGICAL UNIT NUMBER' | 'FUNCTION NOT SUPPORTED';
