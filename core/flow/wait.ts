/**
 * Joins `signal`, `timeoutMs` and the end of an object into one end of a promise. A wait ends once:
 * served, timed out, interrupted, or with its object. An early end loses nothing: the awaited item
 * stays.
 */
import { type Clock, TimerEntry, type Timers } from '../spi/index.js';
import { checkNames, checkValues, numberFrom, optional, SIGNAL } from '../spi/checks/index.js';
import { FlowError, refusalOf } from './flow-error.js';

/** Options of every call that waits. */
export interface WaitOptions {
  /** Ends the wait when it fires: DAT_INTERRUPTED_CALL, with the signal's reason as the cause. */
  readonly signal?: AbortSignal | undefined;
  /** Milliseconds, 0 or more, fractions too: DAT_TIMEOUT_EXPIRED. Default Infinity. */
  readonly timeoutMs?: number | undefined;
}

/** The adapter's clock and timers. */
export interface WaitHost {
  readonly clock: Clock;
  readonly timers: Timers;
}

/** The owner of a wait. */
export interface WaitOwner<T> {
  /** Removes a wait that ends early. */
  leave(wait: Wait<T>): void;
  /** Extra text for the timeout or abort error; '' for none. */
  explain(wait: Wait<T>): string;
}

export const NO_OPTIONS: WaitOptions = Object.freeze({});
/** Kinds of `signal` and `timeoutMs`. */
export const WAIT_KINDS = {
  signal: optional(SIGNAL),
  timeoutMs: optional(numberFrom(0, Infinity)),
};
const WAIT_NAMES = Object.keys(WAIT_KINDS);

/**
 * @param more names that the call takes besides `signal` and `timeoutMs`, checked by the caller
 * @throws FlowError DAT_INVALID_PARAMETER; DAT_INTERRUPTED_CALL when the signal has fired before
 */
export function checkWait(
  operation: string,
  options: WaitOptions,
  more: readonly string[] = [],
): void {
  if (options === NO_OPTIONS) return;
  const refuse = refusalOf(operation);
  checkNames(options, [...WAIT_NAMES, ...more], refuse);
  checkValues(options, WAIT_KINDS, refuse);
  if (options.signal?.aborted === true)
    throw interrupted(operation, options.signal, 'nothing was done');
}

function interrupted(operation: string, signal: AbortSignal, explanation: string): FlowError {
  return new FlowError('DAT_INTERRUPTED_CALL', {
    operation,
    message: `its AbortSignal was aborted${withComma(explanation)}`,
    cause: signal.reason,
  });
}

function timedOut(operation: string, timeoutMs: number, explanation: string): FlowError {
  return new FlowError('DAT_TIMEOUT_EXPIRED', {
    operation,
    message: `not done within ${timeoutMs} ms${withComma(explanation)}`,
    value: timeoutMs,
  });
}

function withComma(explanation: string): string {
  return explanation === '' ? '' : `: ${explanation}`;
}

type Resolve<T> = (value: T) => void;
type Reject = (error: Error) => void;

// The executor of a promise runs within its constructor: one function serves all of them.
let lastResolve: Resolve<never> | undefined;
let lastReject: Reject | undefined;
const capture = (resolve: Resolve<never>, reject: Reject): void => {
  lastResolve = resolve;
  lastReject = reject;
};

/** A promise that has not ended. */
export class Wait<T> {
  readonly promise: Promise<T>;
  /** Links of the list that it is in. */
  next: Wait<T> | undefined = undefined;
  previous: Wait<T> | undefined = undefined;
  /** Its place in the owner's numbering. */
  place = -1;
  private readonly fulfil: Resolve<T>;
  private readonly refuse: Reject;
  private limits: Limits<T> | undefined = undefined;

  constructor(
    readonly owner: WaitOwner<T>,
    /** The call that waits. */
    readonly operation: string,
  ) {
    this.promise = new Promise<T>(capture as (resolve: Resolve<T>, reject: Reject) => void);
    this.fulfil = lastResolve as Resolve<T>;
    this.refuse = lastReject as Reject;
    lastResolve = undefined;
    lastReject = undefined;
  }

  /** Allows it to end early. @param options checked by `checkWait` */
  limit(host: WaitHost, options: WaitOptions): this {
    const { signal, timeoutMs = Infinity } = options;
    if (signal === undefined && timeoutMs === Infinity) return this;
    this.limits = new Limits(this, host, signal, timeoutMs);
    return this;
  }

  resolve(value: T): void {
    this.limits?.stop();
    this.fulfil(value);
  }

  reject(error: Error): void {
    this.limits?.stop();
    this.refuse(error);
  }
}

/** The timer and the signal of a wait that has any. */
class Limits<T> extends TimerEntry {
  private readonly onAbort: (() => void) | undefined;

  constructor(
    private readonly wait: Wait<T>,
    private readonly host: WaitHost,
    private readonly signal: AbortSignal | undefined,
    private readonly timeoutMs: number,
  ) {
    super();
    if (signal !== undefined) {
      this.onAbort = () =>
        this.leave((explanation) => interrupted(wait.operation, signal, explanation));
      signal.addEventListener('abort', this.onAbort, { once: true });
    }
    if (timeoutMs !== Infinity) host.timers.start(this, host.clock.now() + timeoutMs * 1000);
  }

  override expire(): void {
    this.leave((explanation) => timedOut(this.wait.operation, this.timeoutMs, explanation));
  }

  stop(): void {
    this.host.timers.stop(this);
    if (this.onAbort !== undefined) this.signal?.removeEventListener('abort', this.onAbort);
  }

  private leave(errorOf: (explanation: string) => FlowError): void {
    const { wait } = this;
    const explanation = wait.owner.explain(wait);
    wait.owner.leave(wait);
    wait.reject(errorOf(explanation));
  }
}

/** Makes the error of a wait whose object ends: one for each call. */
export type EndError = (operation: string) => FlowError;

/** Pending waits, in order of arrival. */
export class Waits<T> implements WaitOwner<T> {
  private first: Wait<T> | undefined = undefined;
  private last: Wait<T> | undefined = undefined;

  /** @param explanation what is to be said of a wait that ends early */
  constructor(
    private readonly host: WaitHost,
    private readonly explanation: () => string = () => '',
  ) {}

  get isEmpty(): boolean {
    return this.first === undefined;
  }

  /** @param options checked by `checkWait` */
  add(operation: string, options: WaitOptions): Promise<T> {
    const wait = new Wait<T>(this, operation);
    wait.previous = this.last;
    if (this.last === undefined) this.first = wait;
    else this.last.next = wait;
    this.last = wait;
    return wait.limit(this.host, options).promise;
  }

  /** Gives an item to the oldest wait; false when there is none. */
  serve(value: T): boolean {
    const { first } = this;
    if (first === undefined) return false;
    this.leave(first);
    first.resolve(value);
    return true;
  }

  /** Ends all waits with their object. */
  end(errorOf: EndError): void {
    for (let wait = this.first; wait !== undefined; wait = this.first) {
      this.leave(wait);
      wait.reject(errorOf(wait.operation));
    }
  }

  leave(wait: Wait<T>): void {
    const { previous, next } = wait;
    if (previous === undefined) this.first = next;
    else previous.next = next;
    if (next === undefined) this.last = previous;
    else next.previous = previous;
    wait.next = undefined;
    wait.previous = undefined;
  }

  explain(): string {
    return this.explanation();
  }
}
