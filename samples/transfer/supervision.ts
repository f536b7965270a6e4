/** Reports of a side to the command that runs both sides, over the IPC channel. */
import type { TransferFailure } from './failure.js';

export type Report =
  | { readonly type: 'listening' }
  | {
      readonly type: 'failed';
      readonly what: string;
      readonly figures: string | undefined;
      readonly byPeer: boolean;
      readonly exitCode: number;
    };

/** Sends a report to the parent process. */
export function report(message: Report): void {
  process.send?.(message);
}

export function reportFailure(failure: TransferFailure): void {
  const { what, figures, byPeer, exitCode } = failure;
  report({ type: 'failed', what, figures, byPeer, exitCode });
}
