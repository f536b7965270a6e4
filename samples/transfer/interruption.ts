/** Signals that end a transfer early, as an AbortSignal whose reason is the failure. */
import { TransferFailure } from './failure.js';

const EXIT_CODES = { SIGHUP: 129, SIGINT: 130, SIGTERM: 143 } as const;
/** Whatever may hang on the way out, the process does not stay longer than this. */
const DEADLINE_MS = 3000;

/**
 * Aborts at the first SIGINT, SIGTERM or SIGHUP; later ones change nothing (a terminal and a parent
 * may both send one). Ends the process if it has not ended by itself in three seconds.
 * @param supervised the process is to end with its parent, too
 */
export function interruptedBySignals(supervised: boolean): AbortSignal {
  const controller = new AbortController();
  const abort = (exitCode: number, what: string): void => {
    if (controller.signal.aborted) return;
    controller.abort(new TransferFailure(what, { exitCode }));
    setTimeout(() => process.exit(exitCode), DEADLINE_MS).unref();
  };
  for (const [name, exitCode] of Object.entries(EXIT_CODES)) {
    process.on(name, () => abort(exitCode, 'Interrupted'));
  }
  if (supervised) {
    process.on('disconnect', () => abort(1, 'The command has been killed'));
    // To listen for the end of the parent must not keep this process alive.
    process.channel?.unref();
  }
  return controller.signal;
}
