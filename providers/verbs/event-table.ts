/** Who hears of an asynchronous event: objects by the addon's numbers, which are apart by kind. */
import { AsyncEventType } from '../../core/spi/index.js';
import type { VerbsCompletionQueue } from './completion-queue.js';
import type { VerbsQueuePair } from './queue-pair.js';
import type { VerbsSharedReceiveQueue } from './shared-receive-queue.js';

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

export class EventTable {
  readonly completionQueues = new Map<number, VerbsCompletionQueue>();
  readonly queuePairs = new Map<number, VerbsQueuePair>();
  readonly sharedQueues = new Map<number, VerbsSharedReceiveQueue>();

  /** @returns false for an event of the device or its port */
  deliver(type: AsyncEventType, object: number): boolean {
    if (type === AsyncEventType.CQ_ERR) this.completionQueues.get(object)?.init.onEvent(type);
    else if (OF_QUEUE_PAIRS.has(type)) this.queuePairs.get(object)?.eventHandler(type);
    else if (OF_SHARED_QUEUES.has(type)) this.sharedQueues.get(object)?.init.onEvent(type);
    else return false;
    return true;
  }
}
