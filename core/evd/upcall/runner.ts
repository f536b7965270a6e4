/** Carries out what the gate allows: hands events to the handler and watches it end. */
import type { DatEvent } from '../events/event.js';
import type { EventStore } from '../queue/event-store.js';
import {
  type NotifyHandler,
  Upcall,
  type UpcallHandler,
  type UpcallOwner,
  callHandler,
} from './upcall.js';
import { enterFrame, leaveFrame } from './frame.js';
import { UpcallGate } from './gate.js';
import type { Scheduler } from '../../spi/index.js';

/** What is told of upcalls. */
export interface UpcallListener {
  /** A handler has thrown or rejected. */
  upcallFailed(cause: unknown, event: DatEvent | undefined): void;
  /** An upcall that outlived its call has ended. */
  upcallEnded(): void;
}

/** What has the upcalls of an EVD to itself: a stream of them. */
export interface UpcallLessee {
  /** It has them no more: another handler, TEARDOWN by the consumer, or the end of the EVD. */
  upcallsLost(): void;
}

export class UpcallRunner {
  readonly gate = new UpcallGate();
  handler: UpcallHandler | NotifyHandler | undefined;
  lessee: UpcallLessee | undefined = undefined;

  constructor(
    private readonly evd: UpcallOwner,
    private readonly store: EventStore,
    private readonly listener: UpcallListener,
    private readonly scheduler: Scheduler,
  ) {}

  /** Starts at most `budget` upcalls; returns what is left of it: 0 when the turn is over, too. */
  run(budget: number): number {
    let left = budget;
    while (left > 0 && this.gate.mayStart(this.store.pending)) {
      if (left < budget && !this.scheduler.mayStart()) return 0;
      if (!this.start()) break;
      left--;
    }
    return left;
  }

  private start(): boolean {
    const handler = this.handler;
    if (handler === undefined) return false;
    const carriesEvent = this.gate.carriesEvent;
    const event = carriesEvent ? this.store.take() : undefined;
    if (carriesEvent && event === undefined) return false;
    // What comes from here on calls for an upcall by itself.
    if (this.store.pending === 0) this.gate.due = false;
    const more = this.store.pending > 0 || this.store.scan() > 0;
    const upcall = new Upcall(this.evd, more);
    this.gate.begin(upcall);
    try {
      const result = callHandler(handler, event, upcall);
      if (isPromiseLike(result)) {
        this.follow(result, event, upcall);
        return true;
      }
    } catch (error) {
      this.listener.upcallFailed(error, event);
    }
    this.gate.end(upcall);
    return true;
  }

  /** The upcall lasts until the handler's promise settles. */
  private follow(result: PromiseLike<void>, event: DatEvent | undefined, upcall: Upcall): void {
    const frame = result instanceof Promise ? enterFrame(upcall) : undefined;
    let over = false;
    const end = (): void => {
      if (over) return;
      over = true;
      if (frame !== undefined) leaveFrame(frame);
      this.gate.end(upcall);
      this.listener.upcallEnded();
    };
    const fail = (error: unknown): void => {
      if (!over) this.listener.upcallFailed(error, event);
      end();
    };
    (frame?.follow(result) ?? result).then(end, fail);
  }
}

/** As the language sees it: an object with a method `then`. */
export function isPromiseLike<T>(value: T | PromiseLike<T>): value is PromiseLike<T> {
  if (typeof value !== 'object' || value === null) return false;
  return typeof (value as Partial<PromiseLike<T>>).then === 'function';
}
