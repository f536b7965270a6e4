/** What an object is made from, if it is of this provider and of the same device. */
import { SpiError } from '../../../core/spi/index.js';
import type { CompletionQueue, XrcDomainHandle } from '../../../core/spi/index.js';
import { VerbsCompletionQueue } from './completion-queue.js';
import type { VerbsDevice } from '../device.js';
import { VerbsXrcDomain } from './xrc-domain.js';

/** @throws SpiError('EINVAL') */
export function queueOf(device: VerbsDevice, cq: CompletionQueue): VerbsCompletionQueue {
  if (!(cq instanceof VerbsCompletionQueue)) {
    throw new SpiError('EINVAL', 'the completion queue is of another provider');
  }
  cq.checkUsable(device);
  return cq;
}

/** @throws SpiError('EINVAL') */
export function xrcDomainOf(
  device: VerbsDevice,
  domain: XrcDomainHandle | undefined,
): VerbsXrcDomain {
  if (!(domain instanceof VerbsXrcDomain)) {
    throw new SpiError('EINVAL', 'there is no XRC domain of this provider');
  }
  domain.checkUsable(device);
  return domain;
}
