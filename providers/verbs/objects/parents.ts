/** What an object is made from, if it is of this provider and of the same device. */
import { SpiError } from '../../../core/spi/index.js';
import type {
  CompletionQueue,
  ProtectionDomain,
  XrcDomainHandle,
} from '../../../core/spi/index.js';
import { VerbsCompletionQueue } from './completion-queue.js';
import type { OpenDevice } from './open-device.js';
import { VerbsProtectionDomain } from './protection-domain.js';
import { VerbsXrcDomain } from './xrc-domain.js';

/** @throws SpiError('EINVAL') */
export function domainOf(device: OpenDevice, pd: ProtectionDomain): VerbsProtectionDomain {
  if (!(pd instanceof VerbsProtectionDomain)) {
    throw new SpiError('EINVAL', 'the protection domain is of another provider');
  }
  pd.checkUsable(device);
  return pd;
}

/** @throws SpiError('EINVAL') */
export function queueOf(device: OpenDevice, cq: CompletionQueue): VerbsCompletionQueue {
  if (!(cq instanceof VerbsCompletionQueue)) {
    throw new SpiError('EINVAL', 'the completion queue is of another provider');
  }
  cq.checkUsable(device);
  return cq;
}

/** @throws SpiError('EINVAL') */
export function xrcDomainOf(
  device: OpenDevice,
  domain: XrcDomainHandle | undefined,
): VerbsXrcDomain {
  if (!(domain instanceof VerbsXrcDomain)) {
    throw new SpiError('EINVAL', 'there is no XRC domain of this provider');
  }
  domain.checkUsable(device);
  return domain;
}
