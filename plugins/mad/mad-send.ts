/**
 * A posted MAD from `send` to its report: runs the rows of send-states.ts. It holds one reference
 * to its agent for each work request, one for an awaited response, and one for a pending report.
 */
import {
  type Clock,
  type MadSend as MadSendOptions,
  type MadSendHandle,
  type Scheduler,
  Timer,
  type Timers,
  WcStatus,
} from '../../core/spi/index.js';
import type { Agent } from './agent.js';
import type { MadPort } from './port.js';
import { SEND_TABLE, type SendAction, type SendEvent, type SendState } from './send-states.js';
import type { Destination, OnTransmitted, Transmission } from './transmission.js';

/** Services that a send uses. */
export interface MadSendServices {
  readonly port: MadPort;
  readonly timers: Timers;
  readonly clock: Clock;
  readonly scheduler: Scheduler;
}

export interface MadSendInit {
  readonly options: MadSendOptions;
  readonly destination: Destination;
  /** Key that a response must match; undefined if none is expected. */
  readonly key: string | undefined;
  readonly makeTransmission: (onTransmitted: OnTransmitted) => Transmission;
}

export class MadSend implements MadSendHandle {
  readonly context: unknown;
  readonly destination: Destination;
  readonly key: string | undefined;
  private readonly transmission: Transmission;
  private timeoutUs: number;
  private retriesLeft: number;
  private state: SendState;
  private status: WcStatus = WcStatus.SUCCESS;
  private transmitted: WcStatus = WcStatus.SUCCESS;
  private rmppStatus = 0;
  private responseArriving = false;
  private readonly timer = new Timer(() => this.advance(this.expiry()));

  constructor(
    private readonly services: MadSendServices,
    private readonly agent: Agent,
    init: MadSendInit,
  ) {
    const { options, key } = init;
    this.context = options.context;
    this.destination = init.destination;
    this.key = key;
    this.timeoutUs = options.timeoutUs;
    this.retriesLeft = options.retries;
    this.state = key === undefined ? 'TELLING' : 'ASKING';
    this.transmission = init.makeTransmission((end, status, rmppStatus) => {
      this.transmitted = status;
      this.rmppStatus = rmppStatus;
      this.advance(end);
    });
    if (this.awaitsResponse) agent.retain();
  }

  get isDone(): boolean {
    return this.state === 'DONE';
  }

  get awaitsResponse(): boolean {
    return this.state === 'ASKING' || this.state === 'WAITING';
  }

  start(): void {
    this.transmission.start();
  }

  respond(): void {
    this.advance('response');
    if (this.state === 'ANSWERED') this.transmission.stop(false);
  }

  /** A part of its response has arrived: the timeout is extended when it expires. */
  noteArriving(): void {
    this.responseArriving = true;
  }

  cancel(): void {
    this.advance('cancel');
    if (this.state === 'CANCELLED') this.transmission.stop(!this.agent.unregistering);
  }

  /** Changes the timeout: from now if the wait has begun, else from the completion of the send. */
  modify(timeoutUs: number): void {
    this.timeoutUs = timeoutUs;
    if (this.state === 'WAITING') this.startTimer();
  }

  private expiry(): SendEvent {
    if (this.responseArriving) return 'arriving';
    return this.retriesLeft > 0 && this.transmission.isRepeatable ? 'retry' : 'exhausted';
  }

  private advance(event: SendEvent): void {
    const row = SEND_TABLE[this.state][event];
    if (!row) return;
    const awaited = this.awaitsResponse;
    this.state = row.next;
    for (const action of row.actions) this.actions[action]();
    if (awaited && !this.awaitsResponse) this.agent.release();
  }

  private readonly actions: Readonly<Record<SendAction, () => void>> = {
    transmit: () => {
      this.retriesLeft--;
      this.transmission.start();
    },
    startTimer: () => this.startTimer(),
    stopTimer: () => this.services.timers.stop(this.timer),
    deliver: () => this.agent.deliver(this),
    statusSuccess: () => (this.status = WcStatus.SUCCESS),
    statusOfTransmission: () => (this.status = this.transmitted),
    statusTimeout: () => (this.status = WcStatus.RESP_TIMEOUT_ERR),
    statusFlushed: () => (this.status = WcStatus.WR_FLUSH_ERR),
    deferReport: () => {
      this.agent.retain();
      this.services.scheduler.defer(() => {
        this.advance('returned');
        this.agent.release();
      });
    },
    report: () => {
      this.transmission.forget();
      this.agent.report(this, this.status, this.rmppStatus);
    },
  };

  private startTimer(): void {
    const { timers, clock } = this.services;
    this.responseArriving = false;
    timers.start(this.timer, clock.now() + this.timeoutUs);
  }
}
