/** Signals whose default action ends the process, and by which the last packets leave. */
import { constants } from 'node:os';
import { isMainThread } from 'node:worker_threads';
import type { NativeAddon } from './native-addon.js';

const PARTING_SIGNALS = ['SIGTERM', 'SIGINT', 'SIGHUP'] as const;

/**
 * Has what ports keep for their parting leave by those signals that the application does not
 * listen to; a listener that it adds later takes the place of this. A worker thread cannot see the
 * listeners: it leaves this to the main thread.
 */
export function watchSignals(addon: Pick<NativeAddon, 'watchSignal'>): void {
  if (!isMainThread) return;
  for (const signal of PARTING_SIGNALS) {
    if (process.listenerCount(signal) === 0) addon.watchSignal(constants.signals[signal]);
  }
}
