/**
 * A posted MAD from `send` to its report: runs the rows of send-states.ts. The agent is referred to
 * once for each work request, once for an awaited response, once for a report that is due.
 */
import { Timer, WcStatus } from '../../core/spi/index.js';
import type {
  Clock,
  MadSend as MadSendOptions,
  MadSendHandle,
  Scheduler,
  Timers,
} from '../../core/spi/index.js';
import type { CachedAddress } from './address-handles.js';
import type { GsiPort, WorkRequest } from './gsi-port.js';
import { SEND_TABLE } from './send-states.js';
import type { SendAction, SendEvent, SendState } from './send-states.js';

/** What a send needs of its surroundings. */
export interface MadSendServices {
  readonly port: GsiPort;
  readonly timers: Timers;
  readonly clock: Clock;
  readonly scheduler: Scheduler;
}

/** What a send tells its agent. */
export interface MadSendOwner {
  retain(): void;
  release(): void;
  deliver(send: MadSend): void;
  report(send: MadSend, status: WcStatus): void;
  readonly unregistering: boolean;
}

export class MadSend implements MadSendHandle, WorkRequest {
  readonly context: unknown;
  readonly data: Uint8Array;
  readonly qpn: number;
  readonly qkey: number;
  timeoutUs: number;
  private state: SendState;
  private status: WcStatus = WcStatus.SUCCESS;
  private completion: WcStatus = WcStatus.SUCCESS;
  private retriesLeft: number;
  /** Entries on the port; RMPP has several. */
  private workRequests = 0;
  private readonly timer = new Timer(() =>
    this.advance(this.retriesLeft > 0 ? 'retry' : 'exhausted'),
  );

  /** @param key what a response must match, undefined if none is expected */
  constructor(
    private readonly services: MadSendServices,
    private readonly owner: MadSendOwner,
    readonly address: CachedAddress,
    options: MadSendOptions,
    readonly key: string | undefined,
  ) {
    this.context = options.context;
    this.data = options.data.slice();
    this.qpn = options.destination.qpn;
    this.qkey = options.destination.qkey;
    this.timeoutUs = options.timeoutUs;
    this.retriesLeft = options.retries;
    this.state = key === undefined ? 'TELLING' : 'ASKING';
    if (this.awaitsResponse) owner.retain();
  }

  get isDone(): boolean {
    return this.state === 'DONE';
  }

  get awaitsResponse(): boolean {
    return this.state === 'ASKING' || this.state === 'WAITING';
  }

  /** Puts the send's work request on the port. */
  start(): void {
    this.workRequests++;
    this.owner.retain();
    this.services.port.post(this);
  }

  mayRepost(): boolean {
    return !this.owner.unregistering && (this.state === 'TELLING' || this.state === 'ASKING');
  }

  onComplete(status: WcStatus): void {
    this.workRequests--;
    if (status !== WcStatus.SUCCESS && this.completion === WcStatus.SUCCESS) {
      this.completion = status;
    }
    if (this.workRequests === 0) {
      this.advance(this.completion === WcStatus.SUCCESS ? 'sent' : 'failed');
    }
    this.owner.release();
  }

  respond(): void {
    this.advance('response');
  }

  cancel(): void {
    this.advance('cancel');
    if (this.state === 'CANCELLED' && this.services.port.withdraw(this))
      this.takeOffPort('withdrawn');
  }

  /** The port is gone with our work requests. */
  tear(): void {
    if (this.workRequests > 0) this.takeOffPort('torn');
    else this.advance('torn');
  }

  /** A new timeout: from now if the wait has begun, else from the completion of the send. */
  modify(timeoutUs: number): void {
    this.timeoutUs = timeoutUs;
    if (this.state === 'WAITING') this.startTimer();
  }

  private takeOffPort(event: 'withdrawn' | 'torn'): void {
    const references = this.workRequests;
    this.workRequests = 0;
    this.advance(event);
    for (let i = 0; i < references; i++) this.owner.release();
  }

  private advance(event: SendEvent): void {
    const row = SEND_TABLE[this.state][event];
    if (!row) return;
    const awaited = this.awaitsResponse;
    this.state = row.next;
    for (const action of row.actions) this.actions[action]();
    if (awaited && !this.awaitsResponse) this.owner.release();
  }

  private readonly actions: Readonly<Record<SendAction, () => void>> = {
    post: () => {
      this.retriesLeft--;
      this.start();
    },
    startTimer: () => this.startTimer(),
    stopTimer: () => this.services.timers.stop(this.timer),
    deliver: () => this.owner.deliver(this),
    statusSuccess: () => (this.status = WcStatus.SUCCESS),
    statusOfCompletion: () => (this.status = this.completion),
    statusTimeout: () => (this.status = WcStatus.RESP_TIMEOUT_ERR),
    statusFlushed: () => (this.status = WcStatus.WR_FLUSH_ERR),
    deferReport: () => {
      this.owner.retain();
      this.services.scheduler.defer(() => {
        this.advance('returned');
        this.owner.release();
      });
    },
    report: () => this.owner.report(this, this.status),
  };

  private startTimer(): void {
    const { timers, clock } = this.services;
    timers.start(this.timer, clock.now() + this.timeoutUs);
  }
}
