/**
 * A target QP. It belongs to its domain and exists as long as a consumer is registered, or as long
 * as the domain if the domain owns it (openib-general, December 2007; linux-rdma, April 2010).
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

/**
 * Delivers events to every consumer of a target, once each: a handler may register, unregister or
 * throw.
 */
class ConsumerEvents {
  /** Handlers in the order of registration. */
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
   * Delivers an event once to each consumer that is registered now, unless another handler
   * unregisters it first. Without consumers the event is logged.
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

  /** @param onEnd is called so that the domain forgets the target */
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

  /** Registers a consumer; a second call has no effect. */
  register(consumer: XrcConsumer, onEvent: QueuePairEventHandler): void {
    this.consumers.set(consumer, onEvent);
  }

  /**
   * Unregisters a consumer; the last one destroys the QP. @throws SpiError('EINVAL') not registered
   */
  unregister(consumer: XrcConsumer): void {
    if (!this.consumers.delete(consumer)) {
      throw new SpiError('EINVAL', `this consumer is not registered with target ${this.qpn}`);
    }
    if (this.consumers.size === 0 && this.owner === 'consumer') this.end();
  }

  /** Destroys the QP, whoever is registered. */
  end(): void {
    if (this.ended) return;
    this.ended = true;
    this.consumers.clear();
    this.onEnd();
    this.qp.destroy();
  }

  /** Delivers an event of the QP; a late one, after its destruction, is dropped. */
  deliver(event: AsyncEventType): void {
    if (!this.ended) this.consumers.deliver(event, this.qpn);
  }
}
