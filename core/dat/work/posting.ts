/** The common part of all posting calls. */
import { DatError } from '../../errors/index.js';
import { invalid } from '../../errors/guards.js';
import type { EntryRing } from './entry-ring.js';

/**
 * The queue looks full: scans, in case completions are waiting.
 * @param limit how many of `what` the consumer may have outstanding
 * @throws DatError DAT_INSUFFICIENT_RESOURCES / DAT_RESOURCE_CREDITS
 */
export function makeRoom(
  operation: string,
  owner: { takeInCompletions(): void },
  queue: EntryRing,
  limit: number,
  what: string,
  hint = 'wait for completions, or ask for more in the endpoint attributes',
): void {
  owner.takeInCompletions();
  if (!queue.full) return;
  throw new DatError('DAT_INSUFFICIENT_RESOURCES', {
    subtype: 'DAT_RESOURCE_CREDITS',
    operation,
    message: `${limit} ${what} are outstanding: the queue is full`,
    hint,
    value: limit,
  });
}

/** Bursts nest; their requests are sent with the outermost, also when `work` throws. */
export function burst(
  operation: string,
  queues: { beginBurst(): void; endBurst(): void },
  work: () => void,
): void {
  if (typeof work !== 'function') throw invalid(operation, 'work', work, 'a function');
  queues.beginBurst();
  try {
    work();
  } finally {
    queues.endBurst();
  }
}

/** For the trace, which is written before parameters are checked. */
export function countOf(segments: unknown): number {
  return Array.isArray(segments) ? segments.length : 1;
}
