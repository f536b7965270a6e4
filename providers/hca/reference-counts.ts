/**
 * Counts references to completion queues, SRQs and domains: +1 when a user is made, -1 when it is
 * destroyed.
 */
import { assert } from '../../core/spi/checks/index.js';
import type { CompletionSource, SoftCompletionQueue } from './completions/completion-queue.js';
import type { SoftQueuePair } from './queue-pair/queue-pair.js';
import type { SoftSharedReceiveQueue } from './srq/shared-receive-queue.js';

type Change = 1 | -1;

export function countQueuePair(qp: SoftQueuePair, change: Change): void {
  countSource(qp.sendCq, qp, change);
  countSource(qp.receiveCq, qp, change);
  qp.domain.children += change;
  if (qp.srq) qp.srq.users += change;
  if (qp.xrcDomain) qp.xrcDomain.children += change;
}

/** An XRC SRQ of another process, too. */
export type SharedReceives = CompletionSource &
  Pick<SoftSharedReceiveQueue, 'completionQueue' | 'domain' | 'xrcDomain'>;

export function countSharedReceives(srq: SharedReceives, change: Change): void {
  const { completionQueue, xrcDomain } = srq;
  srq.domain.children += change;
  if (xrcDomain) xrcDomain.children += change;
  if (completionQueue) countSource(completionQueue, srq, change);
}

function countSource(cq: SoftCompletionQueue, source: CompletionSource, change: Change): void {
  assert(change === 1 || cq.users > 0, 'what ends was counted when it was made');
  cq.users += change;
  if (change === 1) cq.sources.add(source);
  else cq.sources.delete(source);
}
