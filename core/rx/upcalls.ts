/** Upcalls of an event dispatcher as a stream: the policies of DAT as Rx. */
import { isObservable, Observable, type Subscriber } from 'rxjs';
import {
  checkUpcall,
  type DatEvent,
  Evd,
  isPromiseLike,
  type ModifyUpcallOptions,
  type PendingChoice,
  type Upcall,
  type UpcallHandler,
  type UpcallLessee,
  callingUpcall,
} from '../evd/index.js';
import { checkFields, checkParameter } from '../errors/guards.js';
import type { DatError } from '../errors/index.js';
import { ANYTHING, FUNCTION, kindOf, oneOf, optional } from '../spi/checks/index.js';
import { apart } from './run-outside-upcall.js';

/** Options for upcalls. */
export interface UpcallsOptions {
  /**
   * ONE: one upcall at a time, as `concatMap`. MANY: up to `limit`, as `mergeMap`. NOTIFY: a call
   * without an event when events are queued, and the handler dequeues.
   */
  readonly policy: 'ONE' | 'MANY' | 'NOTIFY';
  /** MANY: upcalls at a time, 1 to 65536; default 16. */
  readonly limit?: number;
  /**
   * Handling of events that are queued when upcalls begin, and when they resume after a pause.
   * `deliver` (default): they fire upcalls. `keep`: they stay; the next new event fires an upcall
   * that carries the oldest. `refuse`: upcalls do not begin while there are any.
   */
  readonly pending?: PendingChoice;
  /**
   * true: no more upcalls start (DISABLE); events stay in the dispatcher, for `dequeue()`. false:
   * upcalls start again, by `pending`. It need not emit. Its error is the stream's, and its end
   * changes nothing.
   */
  readonly paused$?: Observable<boolean>;
  /**
   * Called when a pause cannot end: events are queued and `pending` is `refuse`, or something else
   * takes the events (DAT_INVALID_STATE). The pause lasts until `paused$` emits false again.
   * Without it, that is the error of the stream.
   */
  readonly refused?: (error: DatError) => void;
}

/** Result of `upcalls`. */
export interface Upcalls<T> extends Observable<T> {
  /**
   * Resolves when a subscription is over and the upcalls in progress then have ended (TEARDOWN):
   * for the present subscription, or else the last or the first one. Called in a handler, also
   * after an `await`, it does not wait for that upcall.
   */
  readonly torndown: Promise<void>;
}

type NotifyUpcallsOptions = UpcallsOptions & { readonly policy: 'NOTIFY' };
type EventUpcallsOptions = UpcallsOptions & { readonly policy: 'ONE' | 'MANY' };
type AnyHandler<T> = (event: never, upcall: Upcall) => T | PromiseLike<T>;

/**
 * Upcalls as a cold Observable with one subscriber. Subscribing sets the policy (see
 * `evd.modifyUpcall`), unsubscribing is TEARDOWN. It emits what each upcall returns, or its promise
 * resolves to, as they end. An event that no upcall has taken stays in the dispatcher: nothing is
 * queued between the two, however long a handler takes.
 *
 * Errors that a handler throws, or rejects with, go to `ia.async$` as in DAT, and later events
 * still come. The stream completes when the dispatcher is freed, or when something else sets
 * TEARDOWN or another handler (`upcall.teardown()`, `evd.modifyUpcall`), after the upcalls in
 * progress. It errors with DatError: DAT_INVALID_STATE when something else takes the events
 * (another subscriber: use `share()`) or `pending` is `refuse` and events wait; DAT_INVALID_HANDLE
 * when the dispatcher has been freed.
 * @param handler gets the event (none under NOTIFY) and its upcall; an upcall is in progress until
 * the promise that its handler returns has settled
 * @throws DatError DAT_INVALID_PARAMETER
 */
export function upcalls<T>(
  evd: Evd,
  options: NotifyUpcallsOptions,
  handler: (event: undefined, upcall: Upcall) => T | PromiseLike<T>,
): Upcalls<T>;
export function upcalls<T>(
  evd: Evd,
  options: EventUpcallsOptions,
  handler: (event: DatEvent, upcall: Upcall) => T | PromiseLike<T>,
): Upcalls<T>;
export function upcalls<T>(evd: Evd, options: UpcallsOptions, handler: AnyHandler<T>): Upcalls<T> {
  const operation = 'upcalls';
  checkParameter(operation, 'evd', evd, evd instanceof Evd, 'an Evd');
  checkFields(operation, options, OPTIONS);
  const { policy, limit } = options;
  checkUpcall(operation, policy, handler, limit);
  let over = new Deferred();
  const stream = new Observable<T>((subscriber) => {
    const run = new Run(evd, options, handler, subscriber);
    run.begin();
    if (over.isResolved) over = new Deferred();
    return () => {
      evd.giveUpcalls(run);
      over.resolve();
    };
  });
  const torndown = (): Promise<void> => {
    const own = callingUpcall();
    return over.promise.then(() => evd.drainUpcalls(own));
  };
  return Object.defineProperty(stream, 'torndown', { get: torndown }) as Upcalls<T>;
}

const OPTIONS = {
  policy: oneOf(['ONE', 'MANY', 'NOTIFY'] as const),
  /** Checked together with the policy. */
  limit: ANYTHING,
  pending: optional(oneOf<PendingChoice>(['deliver', 'keep', 'refuse'])),
  paused$: optional(kindOf<Observable<boolean>>('an Observable', isObservable)),
  refused: optional(FUNCTION),
};

class Deferred {
  isResolved = false;
  readonly promise: Promise<void>;
  private settle: () => void = () => undefined;

  constructor() {
    this.promise = new Promise((resolve) => (this.settle = resolve));
  }

  resolve(): void {
    this.isResolved = true;
    this.settle();
  }
}

/** One subscription. */
class Run<T> implements UpcallLessee {
  private hasBegun = false;
  private isPaused = false;
  private isLost = false;
  private inProgress = 0;

  constructor(
    private readonly evd: Evd,
    private readonly options: UpcallsOptions,
    private readonly handler: AnyHandler<T>,
    private readonly subscriber: Subscriber<T>,
  ) {}

  /** @throws DatError the reason why it cannot begin */
  begin(): void {
    const { evd, subscriber, options } = this;
    const pauses = options.paused$?.subscribe({
      next: (paused) => this.pause(paused),
      error: (error: unknown) => subscriber.error(error),
    });
    subscriber.add(pauses);
    if (subscriber.closed) return;
    if (this.isPaused) evd.leaseUpcalls(this, 'DISABLE', this.call, {});
    else evd.leaseUpcalls(this, options.policy, this.call, this.choices);
    this.hasBegun = true;
  }

  upcallsLost(): void {
    this.isLost = true;
    this.completeIfOver();
  }

  private get choices(): ModifyUpcallOptions {
    const { limit, pending } = this.options;
    return { ...(limit !== undefined && { limit }), ...(pending !== undefined && { pending }) };
  }

  private pause(wanted: boolean): void {
    if (wanted === this.isPaused) return;
    if (!this.hasBegun) {
      this.isPaused = wanted;
      return;
    }
    // The stream is about to end.
    if (!this.evd.hasLeased(this)) return;
    if (wanted) this.evd.modifyUpcall('DISABLE', this.call);
    else if (!this.resumed()) return;
    this.isPaused = wanted;
  }

  private resumed(): boolean {
    const { evd, options, subscriber } = this;
    const { policy, refused } = options;
    try {
      evd.modifyUpcall(policy as 'ONE', this.call, this.choices);
      return true;
    } catch (error) {
      if (refused === undefined) subscriber.error(error);
      else refused(error as DatError);
      return false;
    }
  }

  private readonly call: UpcallHandler = (event, upcall) => {
    this.inProgress++;
    let result: T | PromiseLike<T>;
    try {
      result = this.handler(event as never, upcall);
    } catch (error) {
      this.ended();
      throw error;
    }
    if (isPromiseLike(result)) return this.follow(result);
    this.subscriber.next(result);
    this.ended();
    return undefined;
  };

  private async follow(result: PromiseLike<T>): Promise<void> {
    try {
      const value = await result;
      await apart(() => this.subscriber.next(value));
    } finally {
      await apart(() => this.ended());
    }
  }

  private ended(): void {
    this.inProgress--;
    this.completeIfOver();
  }

  private completeIfOver(): void {
    if (this.isLost && this.inProgress === 0) this.subscriber.complete();
  }
}
