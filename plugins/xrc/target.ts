/**
 * A target QP: it belongs to its domain, and lives as long as a consumer is registered, or as long
 * as the domain when the domain owns it (openib-general, December 2007; linux-rdma, April 2010).
 */
import {
  AsyncEventType,
  type Logger,
  nameOf,
  type QueuePair,
  type QueuePairEventHandler,
  SpiError,
  type XrcConsumer,
  type XrcTargetOwner,
} from '../../core/spi/index.js';

/** Telling every consumer of a target, once: a handler may register, unregister or throw. */
class ConsumerEvents {
  /** In the order in which they registered. */
  private readonly handlers = new Map<XrcConsumer, QueuePairEventHandler>();

  constructor(private readonly logger: Logger) {}

  get size(): number {
    return this.handlers.size;
  }

  has(consumer: XrcConsumer): boolean {
    return this.handlers.has(consumer);
  }

  set(consumer: XrcConsumer, handler: QueuePairEventHandler): void {
    this.handlers.set(consumer, handler);
  }

  delete(consumer: XrcConsumer): boolean {
    return this.handlers.delete(consumer);
  }

  clear(): void {
    this.handlers.clear();
  }

  /**
   * Each consumer that is registered now hears of it once, unless another one's handler has
   * unregistered it by the time that it is its turn. None registered: the log hears of it.
   */
  deliver(event: AsyncEventType, qpn: number): void {
    if (this.handlers.size === 0) {
      this.logger.warn(`XRC target ${qpn}: ${nameOf(AsyncEventType, event)}, nobody registered`, {
        qpn,
        event,
      });
      return;
    }
    for (const [consumer, handler] of [...this.handlers]) {
      if (!this.handlers.has(consumer)) continue;
      try {
        handler(event);
      } catch (error) {
        this.logger.error(`XRC target ${qpn}: an event handler threw`, { qpn, error });
      }
    }
  }
}

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
