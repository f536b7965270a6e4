/** That objects handed in are ours, of the same device, and still there. */
import { einval } from '../../core/spi/errors/einval.js';
import { type SharedReceiveQueue, SpiError } from '../../core/spi/index.js';
import type { Hca } from './hca.js';
import { SoftSharedReceiveQueue } from './srq/shared-receive-queue.js';

/** An object that others are made with. */
interface Parent<Owner> {
  readonly destroyed: boolean;
  belongsTo(owner: Owner): boolean;
}

/** @throws SpiError('EINVAL') that names the object */
export function checkParent<Owner, T extends Parent<Owner>>(
  name: string,
  type: abstract new (...args: never[]) => T,
  object: unknown,
  owner: Owner,
): asserts object is T {
  if (!(object instanceof type) || !object.belongsTo(owner)) {
    throw einval(name, object, 'one of this device');
  }
  if (object.destroyed) throw einval(name, object, 'one that is not destroyed');
}

/** @throws SpiError('EINVAL') */
export function checkSharedReceives(srq: SharedReceiveQueue, hca: Hca): void {
  if (!(srq instanceof SoftSharedReceiveQueue) || hca.sharedReceives.find(srq.srqn) !== srq) {
    throw einval('srq', srq, 'one of this device, not destroyed');
  }
  if (srq.completionQueue) throw new SpiError('EINVAL', 'an XRC SRQ belongs to no queue pair');
}
