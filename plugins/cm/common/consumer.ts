/** Towards the consumer: tasks that call it, time limits that it sets, and texts for it. */
import type { Clock, Logger, Scheduler, TimerEntry, Timers } from '../../../core/spi/index.js';

/**
 * Has tasks of the consumer's run after the present stack has unwound, in order. What one throws
 * is logged; when the module is closed, nothing is told any more.
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

/** Starts a timer, unless there is no limit (Infinity). */
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
