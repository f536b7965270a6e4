/**
 * The CM's control of a queue pair: its state transitions (docs/spi.md), and an event handler in
 * front of the consumer's that passes on all events but COMM_EST, in order.
 */
import {
  type AddressVector,
  AsyncEventType,
  QpState,
  QpType,
  type QueuePair,
  type QueuePairAttributes,
  type QueuePairEventHandler,
} from '../../../core/spi/index.js';

export interface QpPlan {
  readonly addressVector: AddressVector;
  readonly pathMtuBytes: number;
  readonly accessFlags: number;
  readonly destinationQpn: number;
  readonly receivePsn: number;
  readonly sendPsn: number;
  /** Reads and atomics in flight that we serve, and that we issue. */
  readonly responderResources: number;
  readonly initiatorDepth: number;
  readonly minRnrTimer: number;
  readonly ackTimeout: number;
  readonly retryCount: number;
  readonly rnrRetryCount: number;
}

/** Receives COMM_EST events. */
export interface CommEstListener {
  onCommEst(): void;
}

export class QpControl {
  private readonly next: QueuePairEventHandler;
  private readonly front: QueuePairEventHandler;
  private held = true;

  constructor(
    readonly qp: QueuePair,
    private readonly listener: CommEstListener,
  ) {
    this.next = qp.eventHandler;
    this.front = this.onEvent.bind(this);
    qp.eventHandler = this.front;
  }

  private onEvent(event: AsyncEventType): void {
    if (event === AsyncEventType.COMM_EST && this.held) this.listener.onCommEst();
    else this.next(event);
  }

  /** @throws SpiError of the provider */
  toRtr(plan: QpPlan): void {
    this.qp.modify({
      state: QpState.RTR,
      addressVector: plan.addressVector,
      pathMtuBytes: plan.pathMtuBytes,
      accessFlags: plan.accessFlags,
      destinationQpn: plan.destinationQpn,
      receivePsn: plan.receivePsn,
      ...(this.qp.type !== QpType.XRC_INI && {
        maxDestRdAtomic: plan.responderResources,
        minRnrTimer: plan.minRnrTimer,
      }),
    });
  }

  /** @throws SpiError of the provider */
  toRts(plan: QpPlan): void {
    // A target never sends.
    if (this.qp.type === QpType.XRC_TGT) return;
    const attributes: QueuePairAttributes = {
      state: QpState.RTS,
      sendPsn: plan.sendPsn,
      timeout: plan.ackTimeout,
      retryCount: plan.retryCount,
      rnrRetryCount: plan.rnrRetryCount,
      maxRdAtomic: plan.initiatorDepth,
    };
    this.qp.modify(attributes);
  }

  /** Flushes the queue pair. Does nothing if it is destroyed or in error already. */
  toError(): void {
    const { state } = this.qp;
    if (!this.held || state === QpState.ERR || state === QpState.RESET) return;
    try {
      this.qp.modify({ state: QpState.ERR });
    } catch {
      // The owner has destroyed it: there is nothing to flush.
    }
  }

  /** Restores the consumer's event handler. */
  release(): void {
    this.held = false;
    if (this.qp.eventHandler === this.front) this.qp.eventHandler = this.next;
  }
}
