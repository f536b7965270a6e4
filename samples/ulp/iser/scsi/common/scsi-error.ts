/** The error of a failed command, and the mapping of a backend's errors to it. */
import type { BlockError, BlockFailure } from '../../../block/index.js';
import type { FieldPointer } from '../../wire/index.js';
import type { ConditionName } from './conditions.js';
import { ScsiStatus } from './command.js';

/** Ends a command with a status other than GOOD; thrown by the commands, never seen outside. */
export class ScsiError extends Error {
  override readonly name = 'ScsiError';

  private constructor(
    readonly status: ScsiStatus,
    message: string,
    readonly condition?: ConditionName,
    /** The block, or what else the condition counts. */
    readonly information?: bigint,
    readonly field?: FieldPointer,
  ) {
    super(message);
  }

  static withStatus(status: ScsiStatus): ScsiError {
    return new ScsiError(status, `status ${status.toString(16)}h`);
  }

  static check(condition: ConditionName, information?: bigint): ScsiError {
    return new ScsiError(ScsiStatus.CHECK_CONDITION, condition, condition, information);
  }

  static cdbField(byte: number): ScsiError {
    return ScsiError.field('INVALID_FIELD_IN_CDB', { inCdb: true, byte });
  }

  static listField(byte: number): ScsiError {
    return ScsiError.field('INVALID_FIELD_IN_PARAMETER_LIST', { inCdb: false, byte });
  }

  private static field(condition: ConditionName, field: FieldPointer): ScsiError {
    return new ScsiError(ScsiStatus.CHECK_CONDITION, condition, condition, undefined, field);
  }
}

const CONDITIONS: Readonly<Record<BlockFailure, ConditionName>> = {
  'out-of-range': 'LBA_OUT_OF_RANGE',
  'medium-read': 'UNRECOVERED_READ_ERROR',
  'medium-write': 'WRITE_ERROR',
  'no-space': 'SPACE_ALLOCATION_FAILED',
  'read-only': 'WRITE_PROTECTED',
  gone: 'INTERNAL_TARGET_FAILURE',
};

export function fromBlockError({ failure, lba }: BlockError): ScsiError {
  return ScsiError.check(CONDITIONS[failure], lba);
}
