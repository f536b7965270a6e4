/**
 * Finds the parents of an object, and checks that they are of this provider and of the same device.
 */
import {
  type CompletionQueue,
  type ProtectionDomain,
  SpiError,
  type XrcDomainHandle,
} from '../../../core/spi/index.js';
import { VerbsCompletionQueue } from './completion-queue.js';
import type { OpenDevice } from './open-device.js';
import { VerbsProtectionDomain } from './protection-domain.js';
import { VerbsXrcDomain } from './xrc-domain.js';

/** The check common to all objects of this provider. */
interface Usable {
  checkUsable(device: OpenDevice): void;
}

/** @throws SpiError('EINVAL') saying which `kind` of object is of another provider or device */
export function ofDevice<T extends Usable>(
  device: OpenDevice,
  given: unknown,
  kind: string,
  OurClass: abstract new (...args: never[]) => T,
): T {
  if (!(given instanceof OurClass)) {
    throw new SpiError('EINVAL', `the ${kind} is of another provider`);
  }
  given.checkUsable(device);
  return given;
}

export function domainOf(device: OpenDevice, pd: ProtectionDomain): VerbsProtectionDomain {
  return ofDevice(device, pd, 'protection domain', VerbsProtectionDomain);
}

export function queueOf(device: OpenDevice, cq: CompletionQueue): VerbsCompletionQueue {
  return ofDevice(device, cq, 'completion queue', VerbsCompletionQueue);
}

export function xrcDomainOf(
  device: OpenDevice,
  domain: XrcDomainHandle | undefined,
): VerbsXrcDomain {
  if (!domain) throw new SpiError('EINVAL', 'there is no XRC domain');
  return ofDevice(device, domain, 'XRC domain', VerbsXrcDomain);
}
