/** What a queue counts as a user of, and no longer does when it is destroyed. */
import { assert } from '../../core/spi/checks/index.js';
import type { SoftQueuePair } from './queue-pair/queue-pair.js';
import type { SoftSharedReceiveQueue } from './srq/shared-receive-queue.js';

export function endUsesOfQueuePair(qp: SoftQueuePair): void {
  assert(qp.sendCq.sources.has(qp) && qp.domain.children > 0, 'a queue pair ends once', qp.qpn);
  qp.sendCq.sources.delete(qp);
  qp.receiveCq.sources.delete(qp);
  qp.sendCq.users -= 1;
  qp.receiveCq.users -= 1;
  qp.domain.children -= 1;
  if (qp.srq) qp.srq.users -= 1;
  if (qp.xrcDomain) qp.xrcDomain.children -= 1;
}

export function endUsesOfSharedReceives(srq: SoftSharedReceiveQueue): void {
  assert(srq.domain.children > 0, 'a shared receive queue ends once', srq.srqn);
  srq.domain.children -= 1;
  const { completionQueue: cq, xrcDomain } = srq;
  if (xrcDomain) xrcDomain.children -= 1;
  if (!cq) return;
  cq.users -= 1;
  cq.sources.delete(srq);
}
