/** Reports an error of the consumer's own code that no other part of the program would see. */
import { leaveUnhandled } from '../../spi/index.js';

/**
 * Rejects a promise without a handler. That ends a Node process unless it listens for
 * `unhandledRejection` or `uncaughtException`.
 */
export function unhandled(error: unknown): void {
  leaveUnhandled(
    Promise.reject(error instanceof Error ? error : new Error(String(error), { cause: error })),
  );
}
