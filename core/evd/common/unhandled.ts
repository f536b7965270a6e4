/** An error of the consumer's own code that no part of the program hears of. */
import { leaveUnhandled } from '../../spi/index.js';

/**
 * Makes it what it would be without us: the rejection of a promise that has no handler, which ends
 * a Node process unless it listens for `unhandledRejection` or `uncaughtException`.
 */
export function unhandled(error: unknown): void {
  leaveUnhandled(
    Promise.reject(error instanceof Error ? error : new Error(String(error), { cause: error })),
  );
}
