/** The common part of all posting calls. */
import { DatError } from '../../errors/index.js';
import { invalid } from '../../errors/guards.js';
import type { IaCore } from '../common/adapter-state.js';
import type { Pz } from '../memory/pz.js';
import type { EpQueueAttributes } from './attributes.js';
import type { EpCounters } from './counters.js';
import type { EntryRing } from './entry-ring.js';
import type { EpQueues, SharedReceives } from './queues.js';
import type { Ep } from '../endpoint/ep.js';

/** An endpoint that connects, as posting sees it. */
export interface PostingEndpoint {
  readonly ep: Ep;
  readonly core: IaCore;
  readonly init: {
    readonly pz: Pz;
    readonly attributes: EpQueueAttributes;
    readonly srq: SharedReceives | undefined;
    /** The domain of an XRC initiator, which receives nothing. */
    readonly xrc?: object;
  };
  readonly queues: EpQueues;
  readonly counts: EpCounters;
  /** The state by the completions scanned so far: posts use it. */
  readonly knownState: string;
  readonly watermarks: { look(count: number): void } | undefined;
  /** Receives that it holds; undefined if the provider cannot tell. */
  readonly receiveBuffers: number | undefined;
  assertLive(operation: string): void;
  /** @throws DatError DAT_INVALID_STATE */
  checkLegal(operation: string, call: 'postReceive' | 'postRequest'): unknown;
  takeInCompletions(): void;
  /** A receive has been posted while DISCONNECTED: it is flushed at once. */
  onFlushedPost(): void;
}

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
  if (typeof work !== 'function') throw invalid(operation, 1, 'work', work, 'a function');
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
