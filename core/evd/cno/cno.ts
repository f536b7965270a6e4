/**
 * Consumer notification object (dat_cno): one place to wait for many EVDs. An enabled EVD without a
 * consumer of its own notifies its CNO of new events. The consumer finds them by dequeueing from
 * all EVDs of the CNO.
 */
import { checkOptions, checkValue } from '../../errors/guards.js';
import { DatError } from '../../errors/index.js';
import { kindOf, show, showAs } from '../../spi/checks/index.js';
import { changeHold, hasRef, HOLD } from '../../spi/time/hold.js';
import { eventStream, type NotificationStream } from '../../stream/event-stream.js';
import { traceCall } from '../common/api-trace.js';
import { checkSignal, checkSubscriber, checkTimeout } from '../common/checks.js';
import { type AsyncErrorEvent, AsyncErrorReason, DatEventNumber } from '../events/event.js';
import type { EventSink, EventSource } from '../queue/event-sink.js';
import { interruptedError, Waiter } from '../queue/waiter.js';
import { CnoHandle } from './handle.js';
import type { CnoHost } from '../evd-host.js';
import { CNO_STATES, type CnoInput, type CnoState } from './states.js';
import type { Evd } from '../evd.js';

/** The error of a call on a freed CNO. */
function freedCno(operation: string): DatError {
  return new DatError('DAT_INVALID_HANDLE', {
    subtype: 'DAT_INVALID_HANDLE_CNO',
    operation,
    message: 'the CNO has been freed',
  });
}

/** The error of a wait whose CNO ends. */
function deadCno(): DatError {
  return new DatError('DAT_INVALID_STATE', {
    subtype: 'DAT_INVALID_STATE_CNO_DEAD',
    operation: 'cno.wait',
    message: 'the CNO has ended',
  });
}

function cnoInUse(evds: number, waiters: number): DatError {
  return new DatError('DAT_INVALID_STATE', {
    subtype: 'DAT_INVALID_STATE_CNO_IN_USE',
    operation: 'cno.free',
    message: `${evds} EVDs notify this CNO, and ${waiters} waiters wait for it`,
    value: { evds, waiters },
    hint: 'evd.modifyCno(null), and let the waiters end, first',
  });
}

/** dat_cno_wait returns QUEUE_EMPTY where dat_evd_wait returns TIMEOUT_EXPIRED. */
function cnoTimeout(timeoutMs: number): DatError {
  return new DatError('DAT_QUEUE_EMPTY', {
    operation: 'cno.wait',
    message: `no EVD has notified within ${timeoutMs} ms`,
    value: { timeoutMs },
  });
}

/** @throws DatError DAT_INVALID_PARAMETER unless null or a function */
function checkAgent(operation: string, agent: unknown): void {
  checkValue(operation, 'agent', agent, AGENT);
}

const AGENT = kindOf(
  'a function or null',
  (agent) => agent === null || typeof agent === 'function',
);

/** The event for the asynchronous EVD when an agent throws. */
function agentFailed(cno: Cno, cause: unknown): AsyncErrorEvent {
  return {
    type: 'async-error',
    number: DatEventNumber.ASYNC_PROVIDER_INTERNAL_ERROR,
    object: cno,
    reason: AsyncErrorReason.OTHER.OTHER,
    message: `cno ${cno.id}: the agent has failed`,
    cause,
  };
}

/**
 * Called once, with the EVD that has notified (a hint; undefined after `cno.trigger()`), and then
 * forgotten: `cno.modifyAgent` installs it anew (DAT_OS_WAIT_PROXY_AGENT).
 */
export type CnoAgent = (evd: Evd | undefined) => void;

/** Options of `ia.createCno`. */
export interface CnoOptions {
  readonly agent?: CnoAgent | null;
}

export interface CnoWaitOptions {
  /** Milliseconds; 0 only looks. Default: no limit. */
  readonly timeoutMs?: number;
  readonly signal?: AbortSignal;
}

/** Result of `cno.query()` (DAT_CNO_PARAM). */
export interface CnoParam {
  readonly id: number;
  readonly state: CnoState;
  /** The agent that the next notification calls; null if there is none, or it has been called. */
  readonly agent: CnoAgent | null;
  readonly evds: readonly Evd[];
  readonly waiters: number;
}

/** Made by `ia.createCno()`. */
export class Cno implements EventSource<Evd | undefined>, AsyncIterable<Evd | undefined> {
  static {
    showAs(this, 'Cno', ({ id, state, evds, waiters }) => {
      return { id, state, evds: evds.size, waiters: waiters.length };
    });
  }

  readonly handleType = 'CNO';
  /** For the consumer's use (dat_set_consumer_context). */
  consumerContext: unknown = undefined;
  readonly id: number;
  private state: CnoState = 'UNTRIGGERED';
  private hint: Evd | undefined = undefined;
  private agent: CnoAgent | null;
  private readonly evds = new Set<Evd>();
  private readonly waiters: Waiter[] = [];
  private sink: EventSink<Evd | undefined> | undefined = undefined;
  private stream: NotificationStream | undefined = undefined;
  private watched: CnoHandle | undefined = undefined;
  /** Bits of HOLD. */
  private hold = 0;

  /** @internal */
  constructor(
    private readonly host: CnoHost,
    options: CnoOptions & { readonly id: number },
  ) {
    const { agent = null } = options;
    checkAgent('ia.createCno', agent);
    this.id = options.id;
    this.agent = agent;
    this.holdProcess();
  }

  /**
   * Lets consumers of its notifications (waiters, a subscription, the agent) keep the process
   * alive: the default. Its handle has a `ref` of its own. @returns itself
   */
  ref(): this {
    this.hold = changeHold(this.host.processHold, this.hold, HOLD.UNREF, false);
    return this;
  }

  /**
   * Lets the process exit while waits for its notifications are pending, as `unref` of node:net.
   */
  unref(): this {
    this.hold = changeHold(this.host.processHold, this.hold, HOLD.UNREF, true);
    return this;
  }

  /** True if waits for its notifications keep the process alive. */
  hasRef(): boolean {
    return hasRef(this.hold);
  }

  /** True once the object is freed: any other call on it then throws DAT_INVALID_HANDLE. */
  get isFreed(): boolean {
    return this.state === 'DEAD';
  }

  /**
   * Waits for a notification and takes it (dat_cno_wait). One waiter takes one notification.
   *
   * Resolves to the EVD that has notified. It is a hint: others may have notified since, folded
   * into the same trigger, so dequeue from all EVDs of the CNO. Undefined when the last EVD has
   * gone, or after `trigger()`.
   *
   * Rejects with DatError: DAT_QUEUE_EMPTY when the time is up, DAT_INTERRUPTED_CALL when `signal`
   * fires, DAT_INVALID_STATE_CNO_DEAD when the CNO ends, DAT_INVALID_HANDLE when it had been freed,
   * DAT_INVALID_PARAMETER.
   */
  wait(options: CnoWaitOptions = {}): Promise<Evd | undefined> {
    return new Promise((resolve, reject) => {
      const operation = 'cno.wait';
      checkOptions(operation, options, ['timeoutMs', 'signal']);
      const { timeoutMs, signal } = options;
      this.trace(operation, { timeoutMs });
      this.checkOpen(operation);
      checkSignal(operation, signal);
      checkTimeout(operation, timeoutMs);
      if (signal?.aborted === true) throw interruptedError(operation, signal);
      if (this.triggered) resolve(this.take());
      else if (timeoutMs === 0) throw cnoTimeout(0);
      else this.suspend(resolve, reject, timeoutMs, signal);
    });
  }

  /** `for await (const evd of cno)`: a `wait` after another; ends when the CNO does. */
  async *[Symbol.asyncIterator](): AsyncIterableIterator<Evd | undefined> {
    while (!this.isFreed) {
      const ended = Symbol('ended');
      const next = await new Promise<Evd | undefined | typeof ended>((resolve, reject) => {
        if (this.triggered) resolve(this.take());
        else this.suspend(resolve, reject, undefined, undefined, () => resolve(ended));
      });
      if (next === ended) return;
      yield next;
    }
  }

  /**
   * Fires the CNO by hand (dat_cno_trigger), as a notification without an EVD.
   * @returns the EVD whose trigger was there already and still is: a hint
   * @throws DatError DAT_INVALID_HANDLE when freed
   */
  trigger(): Evd | undefined {
    this.trace('cno.trigger', {});
    this.checkOpen('cno.trigger');
    const hint = this.hint;
    this.host.scheduler.defer(() => this.notify(undefined));
    return hint;
  }

  /**
   * Installs the agent that the next notification calls, once (dat_cno_modify_agent); null for
   * none. Earlier notifications do not call it. Install it, then dequeue from all EVDs until each
   * is empty, and nothing is lost.
   * @throws DatError DAT_INVALID_PARAMETER; DAT_INVALID_HANDLE when freed
   */
  modifyAgent(agent: CnoAgent | null): void {
    this.trace('cno.modifyAgent', { agent });
    this.checkOpen('cno.modifyAgent');
    checkAgent('cno.modifyAgent', agent);
    this.setAgent(agent);
  }

  /** @throws DatError DAT_INVALID_HANDLE when freed */
  query(): CnoParam {
    this.checkOpen('cno.query');
    const { id, state, agent, evds, waiters } = this;
    return { id, state, agent, evds: [...evds], waiters: waiters.length };
  }

  /** For other event loops (dat_cno_fd_create): readable while the CNO is triggered. */
  get handle(): CnoHandle {
    if (this.watched === undefined) {
      const isTriggered = (): boolean => this.triggered;
      const take = (): Evd | undefined => (this.triggered ? this.take() : undefined);
      this.watched = new CnoHandle({ isTriggered, take }, this.host.processHold);
      if (this.isFreed) this.watched.close();
    }
    return this.watched;
  }

  /**
   * Takes each notification as it comes. One subscriber (`share()` it for more); waiters are served
   * before it. Completes when the CNO ends.
   */
  get notifications$(): NotificationStream {
    return (this.stream ??= eventStream<Evd | undefined>(this));
  }

  attachSink(sink: EventSink<Evd | undefined>): () => void {
    const operation = 'cno.subscribe';
    this.trace(operation, {});
    this.checkOpen(operation);
    checkSubscriber(operation, this.sink !== undefined);
    this.sink = sink;
    this.holdProcess();
    this.host.scheduler.defer(() => this.serve());
    return () => this.detachSink(sink);
  }

  /**
   * Frees the CNO (dat_cno_free); `notifications$` completes.
   * @throws DatError DAT_INVALID_STATE_CNO_IN_USE while it has EVDs or waiters; DAT_INVALID_HANDLE
   * when freed before
   */
  free(): void {
    this.trace('cno.free', {});
    this.checkOpen('cno.free');
    const { evds, waiters } = this;
    if (evds.size + waiters.length > 0) throw cnoInUse(evds.size, waiters.length);
    this.close();
  }

  [Symbol.dispose](): void {
    if (!this.isFreed) this.free();
  }

  /** @internal ends the CNO, even with waiters */
  close(): void {
    this.step('close');
    this.setAgent(null);
    const sink = this.sink;
    if (sink !== undefined) this.detachSink(sink);
    this.host.scheduler.defer(() => {
      sink?.complete();
      this.watched?.close();
    });
    this.host.onCnoFreed(this);
  }

  /** @internal */
  belongsTo(host: CnoHost): boolean {
    return this.host === host;
  }

  /** @internal an EVD will notify this CNO */
  attach(evd: Evd): void {
    this.evds.add(evd);
  }

  /** @internal */
  detach(evd: Evd): void {
    if (!this.evds.delete(evd)) return;
    // Other EVDs may have been merged into its trigger.
    if (this.hint === evd) [this.hint] = this.evds;
    if (this.evds.size === 0) this.step('orphan');
  }

  /** @internal an EVD has new events; called from the pump */
  notify(evd: Evd | undefined): void {
    if (this.isFreed) return;
    const agent = this.agent;
    const fresh = this.step('notify', evd);
    this.setAgent(null);
    this.watched?.count();
    this.serve();
    const { watched } = this;
    if (fresh && watched !== undefined) this.host.scheduler.defer(() => this.tell(watched));
    if (agent !== null) this.callAgent(agent, evd);
  }

  private holdProcess(): void {
    const { agent, sink, waiters, host } = this;
    const engaged = agent !== null || sink !== undefined || waiters.length > 0;
    this.hold = changeHold(host.processHold, this.hold, HOLD.ENGAGED, engaged);
  }

  private get triggered(): boolean {
    return CNO_STATES[this.state].take.answers === true;
  }

  /** @returns true if the state has changed */
  private step(input: CnoInput, evd?: Evd): boolean {
    const before = this.state;
    const { to, remembers, waiters } = CNO_STATES[before][input];
    this.state = to;
    if (remembers === true) this.hint = evd;
    if (waiters !== undefined) this.endWaiters(waiters);
    return to !== before;
  }

  private take(): Evd | undefined {
    const hint = this.hint;
    this.hint = undefined;
    this.step('take');
    return hint;
  }

  /** Gives the trigger to the first in line. */
  private serve(): void {
    if (!this.triggered) return;
    const waiter = this.waiters.shift();
    if (waiter !== undefined) {
      this.holdProcess();
      waiter.satisfy();
    } else if (this.sink !== undefined) {
      this.sink.next(this.take());
    }
  }

  private tell(handle: CnoHandle): void {
    if (this.triggered) handle.emit('readable', this.hint);
  }

  private suspend(
    resolve: (evd: Evd | undefined) => void,
    reject: (error: unknown) => void,
    timeoutMs: number | undefined,
    signal: AbortSignal | undefined,
    onDead = (): void => reject(deadCno()),
  ): void {
    const { timers, clock } = this.host;
    const satisfy = (): true => {
      resolve(this.take());
      return true;
    };
    const leave = (): boolean => {
      const at = this.waiters.indexOf(waiter);
      if (at < 0) return false;
      this.waiters.splice(at, 1);
      this.holdProcess();
      return true;
    };
    const onTimeout = (): void => {
      if (leave()) waiter.reject(cnoTimeout(timeoutMs ?? Infinity));
    };
    const onAbort = (): void => {
      if (signal !== undefined && leave()) waiter.reject(interruptedError('cno.wait', signal));
    };
    const init = { threshold: 1, satisfy, reject, onFree: onDead, signal, timeoutMs };
    const waiter = new Waiter(init, timers, clock, onTimeout, onAbort);
    this.waiters.push(waiter);
    this.holdProcess();
  }

  private endWaiters(how: 'no EVD' | 'dead'): void {
    const ended = this.waiters.splice(0);
    this.holdProcess();
    for (const waiter of ended) {
      if (how === 'dead') waiter.freed();
      else waiter.satisfy();
    }
  }

  private setAgent(agent: CnoAgent | null): void {
    this.agent = agent;
    this.holdProcess();
  }

  private callAgent(agent: CnoAgent, evd: Evd | undefined): void {
    try {
      agent(evd);
    } catch (cause) {
      this.host.reportFailure(agentFailed(this, cause));
    }
  }

  private detachSink(sink: EventSink<Evd | undefined>): void {
    if (this.sink !== sink) return;
    this.sink = undefined;
    this.holdProcess();
  }

  private checkOpen(operation: string): void {
    if (this.isFreed) throw freedCno(operation);
  }

  private trace(call: string, parameters: Readonly<Record<string, unknown>>): void {
    if (!this.host.logger.isDebugEnabled()) return;
    traceCall(this.host.logger, call, { cno: this.id, ...parameters });
  }
}

// A CNO as a parameter.

/** @throws DatError DAT_INVALID_HANDLE unless null or a live CNO of the adapter */
export function checkCno(operation: string, cno: unknown, host: CnoHost): void {
  if (cno === null) return;
  const refuse = (message: string): DatError => {
    const subtype = 'DAT_INVALID_HANDLE_CNO';
    return new DatError('DAT_INVALID_HANDLE', { subtype, operation, message, value: cno });
  };
  if (!(cno instanceof Cno)) throw refuse(`cno is ${show(cno)}; it must be a Cno or null`);
  if (cno.isFreed) throw refuse(`cno ${cno.id} has been freed`);
  if (!cno.belongsTo(host)) throw refuse(`cno ${cno.id} belongs to another interface adapter`);
}
