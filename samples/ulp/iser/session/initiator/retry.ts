/** Decides which commands are repeated, and when (SAM-5 5.3; RFC 7143, 4.2.2). */
import { SCSI_STATUS, SENSE_KEY } from '../../wire/index.js';
import type { ScsiOutcome } from './task.js';

/** The decision on a command. */
export type Verdict =
  /** It is done, or has failed for good. */
  | 'final'
  /** It is sent again at once: the target has not begun with it. */
  | 'again'
  /** It is sent again later: the target had no room for it. */
  | 'later'
  /** It is sent again in the next session. */
  | 'next session'
  /** It may have been done, and must not be done twice. */
  | 'unknown';

/** True if a command may be executed twice with the same result. */
export type Repeatable = boolean;

/** Statuses of a command that has not been begun, or has been ended by others. */
const STATUS_VERDICTS: ReadonlyMap<number, Verdict> = new Map<number, Verdict>([
  [SCSI_STATUS.BUSY, 'later'],
  [SCSI_STATUS.TASK_SET_FULL, 'later'],
  [SCSI_STATUS.TASK_ABORTED, 'again'],
]);

/** The same for CHECK CONDITION, by sense key. */
const SENSE_VERDICTS: ReadonlyMap<number, Verdict> = new Map<number, Verdict>([
  // It tells of a reset, or of changed parameters; the command itself was not begun.
  [SENSE_KEY.UNIT_ATTENTION, 'again'],
  [SENSE_KEY.ABORTED_COMMAND, 'again'],
]);

export function verdictOf(outcome: ScsiOutcome, isRepeatable: Repeatable): Verdict {
  switch (outcome.kind) {
    case 'answered': {
      const { status, sense } = outcome;
      const verdict =
        status === SCSI_STATUS.CHECK_CONDITION
          ? SENSE_VERDICTS.get(sense?.key ?? -1)
          : STATUS_VERDICTS.get(status);
      if (verdict === undefined) return 'final';
      const wasNotBegun = verdict === 'later' || sense?.key === SENSE_KEY.UNIT_ATTENTION;
      return wasNotBegun || isRepeatable ? verdict : 'unknown';
    }
    case 'unanswered':
      return !outcome.wasSent || isRepeatable ? 'next session' : 'unknown';
    case 'aborted':
    case 'refused':
      return 'final';
  }
}

/** Delays between attempts, in milliseconds, and the number of attempts. */
export interface Backoff {
  readonly firstMs: number;
  readonly mostMs: number;
  /** Attempts in a row that have failed, after which nothing more is tried. */
  readonly attempts: number;
}

/** A session is made anew for two minutes at least, as open-iscsi does before it gives up. */
export const RECONNECT: Backoff = { firstMs: 100, mostMs: 10_000, attempts: 20 };
/** A command that the target had no room for. */
export const RESEND: Backoff = { firstMs: 10, mostMs: 1000, attempts: 20 };

/**
 * The wait before an attempt: twice as long each time, and up to a quarter less by chance, so that
 * initiators that lost a target together do not come back together.
 * @param failures attempts that have failed in a row, from 0
 * @param chance 0 up to 1
 * @returns milliseconds, or undefined when there is no attempt left
 */
export function waitBefore(
  { firstMs, mostMs, attempts }: Backoff,
  failures: number,
  chance: number,
): number | undefined {
  if (failures >= attempts) return undefined;
  const full = Math.min(mostMs, firstMs * 2 ** failures);
  return full * (1 - chance / 4);
}
