/**
 * A connection's hold on its queue pair: the transitions that are the CM's (docs/spi.md), and the
 * event handler in front of the consumer's, which passes on all but COMM_EST, in order.
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
  /** Reads and atomics that we serve, and that we issue. */
  readonly responderResources: number;
  readonly initiatorDepth: number;
  readonly minRnrTimer: number;
  readonly ackTimeout: number;
  readonly retryCount: number;
  readonly rnrRetryCount: number;
}

/** What is told of COMM_EST. */
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

  /** Flushes the queue pair; one that is destroyed, or past that, is left as it is. */
  toError(): void {
    const { state } = this.qp;
    if (!this.held || state === QpState.ERR || state === QpState.RESET) return;
    try {
      this.qp.modify({ state: QpState.ERR });
    } catch {
      // Its owner has destroyed it: there is nothing left to flush.
    }
  }

  /** Steps aside: events go where they went before. */
  release(): void {
    this.held = false;
    if (this.qp.eventHandler === this.front) this.qp.eventHandler = this.next;
  }
}
