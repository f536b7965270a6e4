/** A send over umad from `send` to its report: runs the rows of send-states.ts. */
import {
  type Clock,
  type Gid,
  type MadSendHandle,
  type MadSendResult,
  type ReceivedMad,
  type Scheduler,
  type SpiError,
  Timer,
  type Timers,
  WcStatus,
} from '../../../core/spi/index.js';
import { type Actions, type Machine, TableRunner } from '../../../plugins/cm/provider.js';
import { SEND_TABLE, type SendAction, type SendEvent, type SendState } from './send-states.js';

export interface UmadSendServices {
  readonly timers: Timers;
  readonly clock: Clock;
  readonly scheduler: Scheduler;
}

/** The agent, as its sends see it. */
export interface UmadSendOwner {
  /** A report that is due holds the agent. */
  retain(): void;
  release(): void;
  /** Reads all packets that have arrived. */
  drain(): void;
  deliver(received: ReceivedMad): void;
  report(send: UmadSend, result: MadSendResult): void;
}

export interface UmadSendInit {
  readonly token: number;
  readonly context: unknown;
  readonly gid: Gid;
  /** The key that matches a response; undefined if none is expected. */
  readonly key: string | undefined;
  /** The longest time between the write and a report of the kernel. */
  readonly longestWaitUs: number;
  /** Makes the error for a send without a report even by then. */
  readonly silence: () => SpiError;
}

export class UmadSend implements MadSendHandle, Machine<SendState, SendEvent> {
  state: SendState;
  private status: WcStatus = WcStatus.SUCCESS;
  private failure: SpiError | undefined;
  private received: Omit<ReceivedMad, 'request'> | undefined;
  private readonly timer = new Timer(() => this.onLongestWait());

  constructor(
    private readonly services: UmadSendServices,
    private readonly owner: UmadSendOwner,
    readonly init: UmadSendInit,
  ) {
    this.state = init.key === undefined ? 'TELLING' : 'ASKING';
  }

  get context(): unknown {
    return this.init.context;
  }

  get isDone(): boolean {
    return this.state === 'DONE';
  }

  get awaitsResponse(): boolean {
    return this.state === 'ASKING' || this.state === 'WAITING';
  }

  written(): void {
    this.advance('written');
  }

  refused(failure: SpiError): void {
    this.failure = failure;
    this.advance('refused');
  }

  respond(received: Omit<ReceivedMad, 'request'>): void {
    this.received = received;
    this.advance('response');
    this.received = undefined;
  }

  timedOut(): void {
    this.advance('timeout');
  }

  cancel(): void {
    this.advance('cancel');
  }

  flush(): void {
    this.advance('flush');
  }

  /**
   * Reads reports of the kernel that may have waited while the process was busy with other things.
   */
  private onLongestWait(): void {
    this.owner.drain();
    if (this.state !== 'WAITING') return;
    this.failure = this.init.silence();
    this.advance('silence');
  }

  private advance(event: SendEvent): void {
    UmadSend.RUNNER.dispatch(this, event);
  }

  private static readonly ACTIONS: Actions<UmadSend, SendAction> = {
    startTimer: ({ services, timer, init }) => {
      services.timers.start(timer, services.clock.now() + init.longestWaitUs);
    },
    stopTimer: ({ services, timer }) => services.timers.stop(timer),
    deliver: (send) => {
      if (send.received) send.owner.deliver({ ...send.received, request: send });
    },
    statusSuccess: (send) => (send.status = WcStatus.SUCCESS),
    statusTimeout: (send) => (send.status = WcStatus.RESP_TIMEOUT_ERR),
    statusFlushed: (send) => (send.status = WcStatus.WR_FLUSH_ERR),
    statusFailed: (send) => (send.status = WcStatus.GENERAL_ERR),
    deferReport: (send) => {
      send.owner.retain();
      send.services.scheduler.defer(() => {
        send.advance('returned');
        send.owner.release();
      });
    },
    report: (send) => {
      const { status, failure } = send;
      const why = status === WcStatus.GENERAL_ERR && failure ? { error: failure } : {};
      send.owner.report(send, { handle: send, status, ...why });
    },
  };

  private static readonly RUNNER = new TableRunner(SEND_TABLE, UmadSend.ACTIONS);
}
