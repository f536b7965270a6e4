/** A consumer's handle from `openDomain`: its own objects, and the operations open to all. */
import {
  type Device,
  QpType,
  type QueuePair,
  type QueuePairAttributes,
  type QueuePairEventHandler,
  type SharedReceiveQueue,
  SpiError,
  type XrcConsumer,
  type XrcDomain,
  type XrcInitiatorInit,
  type XrcPreparedTargetInit,
  type XrcSharedReceiveQueueInit,
  type XrcTargetInit,
} from '../../core/spi/index.js';
import { type Destroyable, onDestroy, type SharedDomain } from './shared-domain.js';

export class DomainHold implements XrcDomain {
  private readonly queues = new Set<Destroyable>();
  private readonly initiators = new Set<Destroyable>();
  private open = true;

  /** @param onClose is called when the handle is closed, so that its consumer is forgotten */
  constructor(
    private readonly domain: SharedDomain,
    private readonly consumer: XrcConsumer,
    private readonly device: Device,
    private readonly onClose: () => void,
  ) {
    domain.hold(consumer);
  }

  get key(): string | undefined {
    return this.domain.key;
  }

  get targets(): readonly number[] {
    return this.domain.qpns;
  }

  createSharedReceiveQueue(init: XrcSharedReceiveQueueInit): SharedReceiveQueue {
    const { handle: domain } = this.live;
    const { cq, ...rest } = init;
    const srq = this.device.createSharedReceiveQueue?.({ ...rest, xrc: { domain, cq } });
    if (!srq) {
      throw new SpiError('EOPNOTSUPP', `device ${this.device.name} has no shared receive queues`);
    }
    return counted(srq, this.queues);
  }

  createInitiator(init: XrcInitiatorInit): QueuePair {
    const { handle: xrcDomain } = this.live;
    const qp = this.device.createQueuePair({
      ...init,
      type: QpType.XRC_INI,
      receiveCq: init.sendCq,
      maxReceiveWr: 0,
      maxReceiveSge: 0,
      xrcDomain,
    });
    return counted(qp, this.initiators);
  }

  createTarget(init: XrcTargetInit): number {
    return this.live.createTarget(this.consumer, init).qpn;
  }

  prepareTarget(init: XrcPreparedTargetInit): QueuePair {
    return this.live.prepareTarget(this.consumer, init).qp;
  }

  register(qpn: number, onEvent: QueuePairEventHandler): void {
    this.live.targetOfAnyone(qpn).register(this.consumer, onEvent);
  }

  unregister(qpn: number): void {
    this.live.target(qpn).unregister(this.consumer);
  }

  modify(qpn: number, attributes: QueuePairAttributes): void {
    this.live.with(qpn, (qp) => qp.modify(attributes));
  }

  query(qpn: number): Readonly<QueuePairAttributes> {
    return this.live.with(qpn, (qp) => qp.query());
  }

  close(): void {
    if (!this.open) return;
    const { queues, initiators } = this;
    if (queues.size + initiators.size > 0) {
      throw new SpiError(
        'EBUSY',
        `${queues.size} shared receive queues and ${initiators.size} initiators of this ` +
          'consumer are in the domain',
      );
    }
    this.open = false;
    this.onClose();
    this.domain.leave(this.consumer);
  }

  /** Releases the handle: the consumer's own objects first. */
  release(): void {
    for (const object of [...this.initiators, ...this.queues]) object.destroy();
    this.close();
  }

  /** @throws SpiError('EINVAL') the handle is closed */
  private get live(): SharedDomain {
    if (!this.open) throw new SpiError('EINVAL', 'this handle of the domain is closed');
    return this.domain;
  }
}

/** Counts an object until it is destroyed, however that happens. */
function counted<T extends Destroyable>(object: T, among: Set<Destroyable>): T {
  among.add(object);
  onDestroy(object, () => among.delete(object));
  return object;
}
