/** Calls into the consumer, its time limits, and its error texts. */
import type { Clock, Logger, Scheduler, TimerEntry, Timers } from '../../../core/spi/index.js';

/**
 * Runs tasks that call the consumer after the current stack has unwound, in order. Logs an error
 * that one throws. Once the module is closed, no task runs.
 */
export function deferring(
  { scheduler, logger }: { readonly scheduler: Scheduler; readonly logger: Logger },
  isClosed: () => boolean,
): (task: () => void) => void {
  return (task) =>
    scheduler.defer(() => {
      if (isClosed()) return;
      try {
        task();
      } catch (error) {
        logger.error('a handler of CM events threw', { error });
      }
    });
}

/** Starts a timer, unless the limit is Infinity. */
export function startWithin(
  { timers, clock }: { readonly timers: Timers; readonly clock: Clock },
  timer: TimerEntry,
  limitUs: number,
): void {
  if (limitUs < Infinity) timers.start(timer, clock.now() + limitUs);
}

export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
