/** Telling every consumer of a target, once: a handler may register, unregister or throw. */
import {
  AsyncEventType,
  type Logger,
  nameOf,
  type QueuePairEventHandler,
  type XrcConsumer,
} from '../../core/spi/index.js';

export class ConsumerEvents {
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
