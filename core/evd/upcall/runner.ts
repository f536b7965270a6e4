/** Carries out what the gate allows: hands events to the handler and watches it end. */
import type { DatEvent } from '../event.js';
import type { EventStore } from '../queue/event-store.js';
import {
  type NotifyHandler,
  Upcall,
  type UpcallHandler,
  type UpcallOwner,
  callHandler,
} from './upcall.js';
import { UpcallGate } from './gate.js';

export class UpcallRunner {
  readonly gate = new UpcallGate();
  handler: UpcallHandler | NotifyHandler | undefined;

  constructor(
    private readonly evd: UpcallOwner,
    private readonly store: EventStore,
    /** A handler has thrown or rejected. */
    private readonly onFailure: (error: unknown, event: DatEvent | undefined) => void,
    /** An upcall that outlived its call has ended. */
    private readonly onEnd: () => void,
  ) {}

  /** Starts at most `budget` upcalls; returns what is left of it. */
  run(budget: number): number {
    let left = budget;
    while (left > 0 && this.gate.mayStart(this.store.pending)) {
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
      this.onFailure(error, event);
    }
    this.gate.end(upcall);
    return true;
  }

  /** The upcall lasts until the handler's promise settles. */
  private follow(result: PromiseLike<void>, event: DatEvent | undefined, upcall: Upcall): void {
    let over = false;
    const end = (): void => {
      if (over) return;
      over = true;
      this.gate.end(upcall);
      this.onEnd();
    };
    result.then(end, (error: unknown) => {
      if (!over) this.onFailure(error, event);
      end();
    });
  }
}

function isPromiseLike(value: void | PromiseLike<void>): value is PromiseLike<void> {
  return typeof value === 'object' && value !== null && typeof value.then === 'function';
}
