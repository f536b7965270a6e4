/**
 * Receivers of asynchronous events: objects by the addon's numbers, which are separate for each
 * kind.
 */
import { AsyncEventType } from '../../../core/spi/index.js';

const OF_QUEUE_PAIRS: ReadonlySet<AsyncEventType> = new Set([
  AsyncEventType.QP_FATAL,
  AsyncEventType.QP_REQ_ERR,
  AsyncEventType.QP_ACCESS_ERR,
  AsyncEventType.COMM_EST,
  AsyncEventType.SQ_DRAINED,
  AsyncEventType.PATH_MIG,
  AsyncEventType.PATH_MIG_ERR,
  AsyncEventType.QP_LAST_WQE_REACHED,
]);
const OF_SHARED_QUEUES: ReadonlySet<AsyncEventType> = new Set([
  AsyncEventType.SRQ_ERR,
  AsyncEventType.SRQ_LIMIT_REACHED,
]);

/** Tells its handler, unless it is destroyed. */
export interface EventReceiver {
  deliver(type: AsyncEventType): void;
}

/** A completion queue: also told that there are completions. */
export interface NotifiedReceiver extends EventReceiver {
  notify(): void;
}

export class EventTable {
  readonly completionQueues = new Map<number, NotifiedReceiver>();
  readonly queuePairs = new Map<number, EventReceiver>();
  readonly sharedQueues = new Map<number, EventReceiver>();

  /** Undefined for an object that is gone. */
  receiverOf(type: AsyncEventType, number: number): EventReceiver | 'device' | undefined {
    if (type === AsyncEventType.CQ_ERR) return this.completionQueues.get(number);
    if (OF_QUEUE_PAIRS.has(type)) return this.queuePairs.get(number);
    if (OF_SHARED_QUEUES.has(type)) return this.sharedQueues.get(number);
    return 'device';
  }
}
