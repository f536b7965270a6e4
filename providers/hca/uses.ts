/** What a queue counts as a user of, and no longer does when it is destroyed. */
import type { SoftQueuePair } from './queue-pair/queue-pair.js';
import type { SoftSharedReceiveQueue } from './srq/shared-receive-queue.js';

export function endUsesOfQueuePair(qp: SoftQueuePair): void {
  qp.sendCq.sources.delete(qp);
  qp.receiveCq.sources.delete(qp);
  qp.sendCq.users -= 1;
  qp.receiveCq.users -= 1;
  qp.domain.children -= 1;
  if (qp.srq) qp.srq.users -= 1;
  if (qp.xrcDomain) qp.xrcDomain.children -= 1;
}

export function endUsesOfSharedReceives(srq: SoftSharedReceiveQueue): void {
  srq.domain.children -= 1;
  const { completionQueue: cq, xrcDomain } = srq;
  if (xrcDomain) xrcDomain.children -= 1;
  if (!cq) return;
  cq.users -= 1;
  cq.sources.delete(srq);
}
