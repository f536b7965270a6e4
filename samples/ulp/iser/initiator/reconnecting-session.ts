/**
 * Keeps a session with a target: logs in again when it is lost, and repeats unanswered commands
 * that may be sent twice. The table in session/initiator/retry.ts decides on each command.
 */
import {
  type Backoff,
  IscsiError,
  RECONNECT,
  RESEND,
  type ScsiCommandRequest,
  type ScsiOutcome,
  type ScsiTask,
  type SessionParameters,
  asIscsiError,
  verdictOf,
  waitBefore,
} from '../session/initiator/index.js';
import { LOGIN_STATUS_CLASS, nameOf, TASK_RESPONSE, type TextPair } from '../wire/index.js';
import { Link, type LinkOptions } from './link.js';

/** A command as the consumer passes it. */
export interface Command extends Omit<ScsiCommandRequest, 'done'> {
  /** True if executing it twice has the same result. */
  readonly isRepeatable: boolean;
  readonly signal?: AbortSignal | undefined;
}

export type Answer = Extract<ScsiOutcome, { kind: 'answered' }>;

export interface ReconnectOptions extends LinkOptions {
  /** Backoff for logging in again. */
  readonly reconnect?: Backoff;
  /** Receives a sentence when a session is lost, and when there is one again. */
  readonly notice?: (what: string) => void;
}

/** A command in flight, over as many sessions as it takes: each sees it as a request. */
class Pending implements ScsiCommandRequest {
  readonly lun: Uint8Array;
  readonly cdb: Uint8Array;
  readonly dataIn: Uint8Array | undefined;
  readonly dataOut: Uint8Array | undefined;
  readonly attribute: number | undefined;
  readonly timeoutMs: number | undefined;
  readonly isRepeatable: boolean;
  task: ScsiTask | undefined = undefined;
  resends = 0;
  stopListening: (() => void) | undefined = undefined;

  constructor(
    command: Command,
    readonly order: number,
    readonly resolve: (answer: Answer) => void,
    readonly reject: (error: IscsiError) => void,
    private readonly onOutcome: (pending: Pending, outcome: ScsiOutcome) => void,
  ) {
    ({ lun: this.lun, cdb: this.cdb, dataIn: this.dataIn, dataOut: this.dataOut } = command);
    ({ attribute: this.attribute, timeoutMs: this.timeoutMs } = command);
    this.isRepeatable = command.isRepeatable;
  }

  done(outcome: ScsiOutcome): void {
    this.onOutcome(this, outcome);
  }
}

/** Time for the last commands, and for the logout. */
const CLOSE_TIMEOUT_MS = 5000;

export class ReconnectingSession {
  private link: Link | undefined;
  private parametersOf: SessionParameters | undefined;
  /** Commands that wait for a session. */
  private readonly waiting: Pending[] = [];
  /** Commands that were passed to the session, or wait to be repeated. */
  private underWay = 0;
  private order = 0;
  /** Sessions lost in a row, without an answer to a command in between. */
  private failures = 0;
  /** Time at which the session was established; undefined without one. */
  private upMs: number | undefined;
  private cancelWait: (() => void) | undefined;
  private ended: IscsiError | undefined;
  private isClosing = false;
  private readonly settlers: { up: () => void; failed: (error: IscsiError) => void }[] = [];
  private readonly closers: (() => void)[] = [];

  constructor(private readonly options: ReconnectOptions) {}

  /** Parameters that were agreed at the last login. */
  get parameters(): SessionParameters | undefined {
    return this.parametersOf;
  }

  get isUp(): boolean {
    return this.link?.session.state === 'LOGGED_IN';
  }

  /**
   * Starts the first session. Its failure is final: a wrong address or name is reported at once.
   * @throws IscsiError, as a rejection
   */
  async start(signal?: AbortSignal): Promise<void> {
    const cancel = (): void => this.fail(abortedBy(signal!));
    signal?.throwIfAborted();
    signal?.addEventListener('abort', cancel, { once: true });
    try {
      await new Promise<void>((up, failed) => {
        this.settlers.push({ up, failed });
        this.connect();
      });
    } finally {
      signal?.removeEventListener('abort', cancel);
    }
  }

  /**
   * Executes a command. @returns the answer, with any status that is final @throws IscsiError, as a
   * rejection
   */
  execute(command: Command): Promise<Answer> {
    const { signal } = command;
    if (this.ended !== undefined || this.isClosing) {
      return Promise.reject(this.ended ?? closedHere());
    }
    if (signal?.aborted === true) return Promise.reject(abortedBy(signal));
    return new Promise((resolve, reject) => {
      const pending = new Pending(command, this.order++, resolve, reject, this.onOutcome);
      if (signal !== undefined) {
        const onAbort = (): void => this.abort(pending, abortedBy(signal));
        pending.stopListening = () => signal.removeEventListener('abort', onAbort);
        signal.addEventListener('abort', onAbort, { once: true });
      }
      this.underWay++;
      this.submit(pending);
    });
  }

  /**
   * Executes a task management function. @throws IscsiError, as a rejection: ISCSI_TASK_MANAGEMENT
   * with the response as status
   */
  manage(what: number, lun: Uint8Array): Promise<void> {
    const { link } = this;
    if (link === undefined || !this.isUp) return Promise.reject(this.ended ?? noSession());
    return new Promise((resolve, reject) => {
      link.session.manage(what, lun, (result) => {
        if (result instanceof IscsiError) reject(result);
        else if (result === TASK_RESPONSE.COMPLETE) resolve();
        else {
          const name = nameOf(TASK_RESPONSE, result);
          const message = `the target answers task management with ${name}`;
          reject(new IscsiError('ISCSI_TASK_MANAGEMENT', message, { status: result }));
        }
      });
      link.arm();
    });
  }

  /** @throws IscsiError, as a rejection */
  text(pairs: readonly TextPair[]): Promise<TextPair[]> {
    const { link } = this;
    if (link === undefined || !this.isUp) return Promise.reject(this.ended ?? noSession());
    return new Promise((resolve, reject) => {
      link.session.text(pairs, (result) => {
        if (result instanceof IscsiError) reject(result);
        else resolve(result);
      });
      link.arm();
    });
  }

  /**
   * Allocates memory that is transferred without a copy; call it after the first session was
   * established.
   */
  allocate(lengthBytes: number): Uint8Array {
    if (this.link === undefined) throw this.ended ?? noSession();
    return this.link.mover.allocate(lengthBytes);
  }

  /** Waits for commands in flight, logs out, and closes. */
  async close(): Promise<void> {
    if (this.ended !== undefined) return;
    this.isClosing = true;
    for (const pending of this.waiting.splice(0)) this.reject(pending, closedHere());
    const over = new Promise<void>((resolve) => this.closers.push(resolve));
    const cancel = this.options.timing.after(CLOSE_TIMEOUT_MS, () => this.fail(closedHere()));
    this.leaveWhenDone();
    await over;
    cancel();
  }

  private connect(): void {
    this.cancelWait = undefined;
    try {
      const link: Link = new Link(this.options, {
        onUp: (parameters) => this.onUp(link, parameters),
        onLogoutAsked: (withinMs) => this.onLogoutAsked(link, withinMs),
        onEnd: (error) => this.onDown(link, error),
      });
      this.link = link;
    } catch (error) {
      // No device, no memory: told as what it is, and tried again like any other failure.
      const message = error instanceof Error ? error.message : String(error);
      const what = `no connection can be made: ${message}`;
      this.onDown(undefined, new IscsiError('ISCSI_CONNECTION', what, { cause: error }));
    }
  }

  private onUp(link: Link, parameters: SessionParameters): void {
    this.link = link;
    this.parametersOf = parameters;
    if (this.failures > 0) this.options.notice?.('the session is there again');
    this.upMs = this.options.timing.nowMs();
    for (const { up } of this.settlers.splice(0)) up();
    const waiting = this.waiting.splice(0).sort((a, b) => a.order - b.order);
    for (const pending of waiting) this.submit(pending);
    this.leaveWhenDone();
  }

  private onDown(link: Link | undefined, error: IscsiError): void {
    if (link !== undefined && this.link !== undefined && this.link !== link) return;
    if (this.ended !== undefined) return;
    if (this.isClosing || this.parametersOf === undefined || isFinal(error)) {
      this.fail(this.isClosing ? closedHere() : error);
      return;
    }
    const { timing, reconnect = RECONNECT, notice } = this.options;
    if (this.wasIdle(reconnect.mostMs)) this.failures = 0;
    this.upMs = undefined;
    const waitMs = waitBefore(reconnect, this.failures, timing.random());
    if (waitMs === undefined) {
      this.fail(error);
      return;
    }
    this.failures++;
    notice?.(`${error.message}; a new session is tried in ${Math.round(waitMs)} ms`);
    this.cancelWait = timing.after(waitMs, () => this.connect());
  }

  /** True if the session lasted that long without commands: that is as good as an answer. */
  private wasIdle(lastedMs: number): boolean {
    if (this.upMs === undefined || this.underWay > 0) return false;
    return this.options.timing.nowMs() - this.upMs >= lastedMs;
  }

  /** Gives commands in flight half of the time; then logs out, and a new session begins. */
  private onLogoutAsked(link: Link, withinMs: number): void {
    const { timing } = this.options;
    const until = timing.nowMs() + withinMs / 2;
    const look = (): void => {
      if (link.session.state !== 'LOGOUT_REQUESTED') return;
      if (link.session.outstanding === 0 || timing.nowMs() >= until) link.session.logout();
      else timing.after(Math.min(LOOK_MS, withinMs / 2), look);
    };
    look();
  }

  /** Gives up for good. */
  private fail(error: IscsiError): void {
    if (this.ended !== undefined) return;
    this.ended = error;
    this.cancelWait?.();
    this.link?.session.lost(error);
    for (const pending of this.waiting.splice(0)) this.reject(pending, error);
    for (const { failed } of this.settlers.splice(0)) failed(error);
    for (const done of this.closers.splice(0)) done();
  }

  private submit(pending: Pending): void {
    if (this.ended !== undefined) {
      this.reject(pending, this.ended);
      return;
    }
    const { link } = this;
    if (link === undefined || !this.isUp) {
      this.waiting.push(pending);
      return;
    }
    try {
      pending.task = link.submit(pending);
    } catch (error) {
      this.reject(pending, asIscsiError(error));
    }
  }

  private readonly onOutcome = (pending: Pending, outcome: ScsiOutcome): void => {
    pending.task = undefined;
    if (outcome.kind === 'answered') this.failures = 0;
    switch (verdictOf(outcome, pending.isRepeatable)) {
      case 'final':
        if (outcome.kind === 'answered') this.resolve(pending, outcome);
        else this.reject(pending, outcome.error);
        return;
      case 'next session':
        if (this.isClosing) this.reject(pending, closedHere());
        else this.waiting.push(pending);
        return;
      case 'unknown':
        this.reject(pending, unknownOutcome(outcome));
        return;
      case 'again':
      case 'later':
        this.sendAgain(pending, outcome as Answer);
    }
  };

  private sendAgain(pending: Pending, outcome: Answer): void {
    const { timing } = this.options;
    const isLater = verdictOf(outcome, pending.isRepeatable) === 'later';
    const waitMs = waitBefore(RESEND, pending.resends, timing.random());
    if (waitMs === undefined) {
      this.resolve(pending, outcome);
      return;
    }
    pending.resends++;
    if (isLater) timing.after(waitMs, () => this.submit(pending));
    else this.submit(pending);
  }

  private abort(pending: Pending, error: IscsiError): void {
    const at = this.waiting.indexOf(pending);
    if (at >= 0) {
      this.waiting.splice(at, 1);
      this.reject(pending, error);
    } else if (pending.task !== undefined) this.link?.session.abort(pending.task, error);
  }

  private resolve(pending: Pending, answer: Answer): void {
    pending.stopListening?.();
    pending.resolve(answer);
    this.settled();
  }

  private reject(pending: Pending, error: IscsiError): void {
    pending.stopListening?.();
    pending.reject(error);
    this.settled();
  }

  private settled(): void {
    this.underWay--;
    if (this.isClosing) this.leaveWhenDone();
  }

  private leaveWhenDone(): void {
    if (!this.isClosing || this.underWay > 0 || this.ended !== undefined) return;
    const state = this.link?.session.state;
    if (state === 'LOGGED_IN' || state === 'LOGOUT_REQUESTED') {
      this.link!.session.logout();
      this.link!.arm();
    } else if (state !== 'IN_LOGOUT') this.fail(closedHere());
  }
}

/** Period of the check whether commands are still in flight. */
const LOOK_MS = 20;

/** True for an error that another attempt would not change. */
function isFinal({ code, status }: IscsiError): boolean {
  if (code === 'ISCSI_LOGIN_REFUSED') {
    return (status ?? 0) >>> 8 !== LOGIN_STATUS_CLASS.TARGET_ERROR;
  }
  return code === 'ISCSI_LOGIN_FAILED';
}

function closedHere(): IscsiError {
  return new IscsiError('ISCSI_CLOSED', 'the session has been closed');
}

function noSession(): IscsiError {
  return new IscsiError('ISCSI_CONNECTION', 'there is no session at the moment');
}

function abortedBy(signal: AbortSignal): IscsiError {
  const { reason: cause } = signal as { reason: unknown };
  return new IscsiError('ISCSI_ABORTED', 'the signal of the call has fired', { cause });
}

function unknownOutcome(outcome: ScsiOutcome): IscsiError {
  const message = 'the command may have been done, and must not be done twice';
  const cause = outcome.kind === 'answered' ? undefined : outcome.error;
  return new IscsiError('ISCSI_OUTCOME_UNKNOWN', message, { cause });
}
