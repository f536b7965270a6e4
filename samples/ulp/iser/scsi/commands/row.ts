/**
 * A row of the command table: a command's CDB, the initiators that may use it, and its function.
 */
import type { Access } from '../reservations/types.js';
import type { Task } from '../unit/task.js';

/** The parts of the target that commands see beyond their own logical unit. */
export interface TargetView {
  /** The iSCSI name of the target. */
  readonly name: string;
  /** Numbers of its logical units, ascending. */
  readonly luns: readonly number[];
  /** The command table itself, for REPORT SUPPORTED OPERATION CODES. */
  readonly commands: readonly CommandRow[];
}

export interface CommandRow {
  readonly name: string;
  readonly opcode: number;
  /** Set if the operation code has several commands. */
  readonly serviceAction?: number;
  /**
   * CDB usage data (SPC-4 6.35.3), a byte each: the operation code (and, in byte 1, the service
   * action), then the bits that the command looks at. Any other bit must be 0.
   */
  readonly usage: readonly number[];
  readonly access: Access;
  /** Runs although the nexus has a unit attention to be told of, which stays (SAM-5 5.14.4). */
  readonly runsBeforeAttention?: boolean;
  /** Runs after START STOP UNIT has stopped the unit. */
  readonly runsWhileStopped?: boolean;
  /** @throws ScsiError for any status but GOOD, BlockError, TaskAborted */
  run(task: Task, target: TargetView): Promise<void>;
}

/** "28 18 ff" as bytes. */
export function usage(hex: string): readonly number[] {
  return hex.split(' ').map((byte) => Number.parseInt(byte, 16));
}
