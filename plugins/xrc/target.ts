/**
 * A target QP: it belongs to its domain, and lives as long as a consumer is registered, or as long
 * as the domain when the domain owns it (openib-general, December 2007; linux-rdma, April 2010).
 */
import {
  type AsyncEventType,
  type Logger,
  type QueuePair,
  type QueuePairEventHandler,
  SpiError,
  type XrcConsumer,
  type XrcTargetOwner,
} from '../../core/spi/index.js';
import { ConsumerEvents } from './consumer-events.js';

export class Target {
  private readonly consumers: ConsumerEvents;
  private ended = false;

  /** @param onEnd the domain forgets it */
  constructor(
    readonly qp: QueuePair,
    private readonly owner: XrcTargetOwner,
    logger: Logger,
    private readonly onEnd: () => void,
  ) {
    this.consumers = new ConsumerEvents(logger);
  }

  get qpn(): number {
    return this.qp.qpn;
  }

  has(consumer: XrcConsumer): boolean {
    return this.consumers.has(consumer);
  }

  /** Registering twice is once. */
  register(consumer: XrcConsumer, onEvent: QueuePairEventHandler): void {
    this.consumers.set(consumer, onEvent);
  }

  /**
   * Unregistering is destroying: the last consumer ends the QP.
   * @throws SpiError('EINVAL') not registered
   */
  unregister(consumer: XrcConsumer): void {
    if (!this.consumers.delete(consumer)) {
      throw new SpiError('EINVAL', `this consumer is not registered with target ${this.qpn}`);
    }
    if (this.consumers.size === 0 && this.owner === 'consumer') this.end();
  }

  /** The QP goes, whatever is registered. */
  end(): void {
    if (this.ended) return;
    this.ended = true;
    this.consumers.clear();
    this.onEnd();
    this.qp.destroy();
  }

  /** An event of the QP; a late one of a QP that is no more concerns nothing. */
  deliver(event: AsyncEventType): void {
    if (!this.ended) this.consumers.deliver(event, this.qpn);
  }
}
