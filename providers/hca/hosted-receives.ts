/** XRC receive queues of other processes, in the process that hosts their domain. */
import {
  type Ring,
  type SharedReceiveQueueInit,
  type SharedReceiveRing,
  SpiError,
} from '../../core/spi/index.js';
import type { SoftCompletionQueue } from './completions/completion-queue.js';
import type { Hca } from './hca.js';
import { SoftSharedReceiveQueue } from './srq/shared-receive-queue.js';
import { countSharedReceives } from './reference-counts.js';

export interface HostedReceives {
  /** The number given out by the process that made the queue. */
  readonly srqn: number;
  /** In memory shared by both processes. */
  readonly receives: SharedReceiveRing;
  readonly completions: Ring;
}

/** @throws SpiError('EBUSY') the number is in use */
export function hostSharedReceiveQueue(
  hca: Hca,
  init: SharedReceiveQueueInit & Required<Pick<SharedReceiveQueueInit, 'xrc'>>,
  { srqn, receives, completions }: HostedReceives,
): SoftSharedReceiveQueue {
  if (srqn === 0 || hca.sharedReceives.find(srqn) !== undefined) {
    throw new SpiError('EBUSY', `receive queue number ${srqn} is in use`);
  }
  const srq = new SoftSharedReceiveQueue(hca, srqn, init, init.maxWr);
  srq.ring = receives;
  srq.words = receives.slots.words;
  (init.xrc.cq as SoftCompletionQueue).ring = completions;
  hca.sharedReceives.insert(srq);
  countSharedReceives(srq, 1);
  return srq;
}
