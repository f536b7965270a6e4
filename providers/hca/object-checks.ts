/** That objects handed in are ours, of the same device, and still there. */
import { SpiError } from '../../core/spi/index.js';
import type {
  CompletionQueue,
  ProtectionDomain,
  SharedReceiveQueue,
} from '../../core/spi/index.js';
import { SoftCompletionQueue } from './completions/completion-queue.js';
import type { Hca } from './hca.js';
import { Domain } from './memory/domain.js';
import { SoftSharedReceiveQueue } from './srq/shared-receive-queue.js';

/** @throws SpiError('EINVAL') */
export function checkDomain(pd: ProtectionDomain, hca: Hca): asserts pd is Domain {
  if (!(pd instanceof Domain) || !pd.belongsTo(hca.memory)) {
    throw new SpiError('EINVAL', 'pd is of another device');
  }
  if (pd.destroyed) throw new SpiError('EINVAL', 'the protection domain is destroyed');
}

/** @throws SpiError('EINVAL') */
export function checkCompletionQueue(cq: CompletionQueue, hca: Hca): void {
  if (!(cq instanceof SoftCompletionQueue) || !cq.belongsTo(hca)) {
    throw new SpiError('EINVAL', 'the completion queue is of another device');
  }
  if (cq.destroyed) throw new SpiError('EINVAL', 'the completion queue is destroyed');
}

/** @throws SpiError('EINVAL') */
export function checkSharedReceives(srq: SharedReceiveQueue, hca: Hca): void {
  if (!(srq instanceof SoftSharedReceiveQueue) || hca.sharedReceives.find(srq.srqn) !== srq) {
    throw new SpiError('EINVAL', 'srq is destroyed, or of another device');
  }
  if (srq.completionQueue) throw new SpiError('EINVAL', 'an XRC SRQ belongs to no queue pair');
}
