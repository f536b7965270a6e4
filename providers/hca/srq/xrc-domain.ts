/** The device's part of an XRC domain, which targets and SRQs must have in common. */
import {
  type QueuePair,
  type QueuePairInit,
  type SharedReceiveQueue,
  type SharedReceiveQueueInit,
  SpiError,
  type XrcDomainHandle,
} from '../../../core/spi/index.js';

/** A domain whose targets and receive queues are in another process. */
export interface XrcHostProcess {
  createSharedReceiveQueue(init: SharedReceiveQueueInit): SharedReceiveQueue;
  createTarget(init: QueuePairInit): QueuePair;
}

export class SoftXrcDomain implements XrcDomainHandle {
  /** Shared receive queues and queue pairs that belong here. */
  children = 0;
  destroyed = false;
  /** Absent where they are here. */
  readonly hostProcess: XrcHostProcess | undefined = undefined;

  /** @param device whose it is */
  constructor(private readonly device: object) {}

  belongsTo(device: object): boolean {
    return this.device === device;
  }

  destroy(): void {
    if (this.destroyed) return;
    if (this.children > 0) {
      throw new SpiError('EBUSY', `${this.children} objects belong to the XRC domain`);
    }
    this.destroyed = true;
  }
}
