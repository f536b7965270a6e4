/** The event dispatcher: one queue fed by streams of events, consumed by pull, push or upcall. */
import { DatError, spiCall } from '../errors/index.js';

import { eventStream, type EventStream } from '../stream/event-stream.js';

import { DatEventNumber } from './events/event.js';

import type { Cno } from './cno/cno.js';
import { checkCno } from './cno/parameter.js';
import type { EventSink, EventSource } from './queue/event-sink.js';
import { checkTaker } from './common/checks.js';
import { checkInteger, checkOptions, checkParameter } from '../errors/guards.js';
import {
  checkEvdOptions,
  checkNotAwaited,
  checkPending,
  checkUpcall,
  invalidHandle,
} from './evd-checks.js';
import { EvdPull } from './evd-pull.js';
import type { EvdHost, EvdOptions, ModifyUpcallOptions } from './evd-host.js';
import { EVD_CONFIGURATIONS, EVD_SUBSTATES, EvdFlags, type EvdTaker } from './common/evd-states.js';
import {
  type NotifyHandler,
  Upcall,
  type UpcallHandler,
  type UpcallOwner,
  currentUpcall,
} from './upcall/upcall.js';
import {
  DEFAULT_UPCALL_LIMIT,
  UPCALL_POLICIES,
  UPCALL_SAME,
  type UpcallPolicy,
} from './upcall/policy.js';

/** What `evd.query()` answers (DAT_EVD_PARAM). */
export interface EvdParam {
  readonly id: number;
  readonly qlen: number;
  /** Bit set of EvdState. */
  readonly state: number;
  /** Bit set of EvdFlags. */
  readonly streams: number;
  /** Notified of events that nothing takes; null without. */
  readonly cno: Cno | null;
  readonly policy: UpcallPolicy;
  /** Upcalls at a time under the policy; 0 when it is not enabled. */
  readonly upcallLimit: number;
  readonly upcallsInProgress: number;
  readonly taker: EvdTaker;
  /** Events that wait. */
  readonly pending: number;
  /** Endpoints, service points and adapters that feed it. */
  readonly users: number;
  /** Completions lost because their endpoint was freed before they were dequeued. */
  readonly dropped: number;
  /** Notifications absorbed because they were not wanted any more. */
  readonly staleNotifications: number;
}

const UPCALL_OPTIONS = ['pending', 'limit', 'upcall'];

type Handler = UpcallHandler | NotifyHandler;
type HandlerOrSame = Handler | typeof UPCALL_SAME | null;

export class Evd extends EvdPull implements EventSource, UpcallOwner, AsyncDisposable {
  readonly handleType = 'EVD';
  /** For the consumer's use (dat_set_consumer_context). */
  consumerContext: unknown = undefined;
  private stream: EventStream | undefined;
  private cno: Cno | null = null;

  /**
   * @throws DatError DAT_INVALID_PARAMETER (qlen, streams, policy, handler, limit),
   * DAT_INSUFFICIENT_RESOURCES when the device has no such completion queue
   */
  constructor(host: EvdHost, options: EvdOptions) {
    const { policy = 'DISABLE', handler, limit = DEFAULT_UPCALL_LIMIT, cno = null } = options;
    checkEvdOptions('ia.createEvd', options);
    checkCno('ia.createEvd', cno, host);
    super(host, options);
    this.applyPolling(options.polling ?? 'event');
    this.upcalls.handler = handler;
    this.upcalls.gate.setPolicy(policy, limit, false);
    this.setCno(cno);
    this.engage();
    this.dispatcher.armAndLook();
  }

  // Push

  /**
   * The events as a stream with one subscriber (`share()` it for more). Unsubscribing leaves the
   * rest queued; it completes when the EVD is freed. A second subscriber gets DAT_INVALID_STATE.
   */
  get events$(): EventStream {
    return (this.stream ??= eventStream(this));
  }

  attachSink(sink: EventSink): () => void {
    this.trace('evd.subscribe', {});
    this.checkOpen('evd.subscribe');
    checkTaker('evd.subscribe', this.dispatcher.taker, 'subscription');
    this.dispatcher.sink = sink;
    this.engage();
    this.dispatcher.alert();
    return () => {
      if (this.dispatcher.sink !== sink) return;
      this.dispatcher.sink = undefined;
      this.engage();
    };
  }

  // Upcalls

  /**
   * Changes policy and handler, from the next upcall on (dat_evd_modify_upcall). DISABLE: nothing
   * starts once this has returned. TEARDOWN: the promise resolves when the upcalls in progress have
   * ended, but for `options.upcall` (in the synchronous part of a handler: that upcall) and for
   * those that wait likewise.
   * @param handler default UPCALL_SAME; null takes the handler away
   * @throws DatError DAT_INVALID_PARAMETER; DAT_INVALID_STATE while something else takes the
   * events, when `pending` is 'refuse' and events wait, or an unnamed upcall awaits TEARDOWN
   */
  modifyUpcall(
    policy: 'TEARDOWN',
    handler?: HandlerOrSame,
    options?: ModifyUpcallOptions,
  ): Promise<void>;
  modifyUpcall(
    policy: 'NOTIFY',
    handler?: NotifyHandler | typeof UPCALL_SAME,
    options?: ModifyUpcallOptions,
  ): void;
  modifyUpcall(
    policy: 'DISABLE' | 'ONE' | 'MANY',
    handler?: UpcallHandler | typeof UPCALL_SAME | null,
    options?: ModifyUpcallOptions,
  ): void;
  modifyUpcall(
    policy: UpcallPolicy,
    handler: HandlerOrSame = UPCALL_SAME,
    options: ModifyUpcallOptions = {},
  ): Promise<void> | void {
    checkOptions('evd.modifyUpcall', 4, options, UPCALL_OPTIONS);
    const { pending = 'deliver', limit = DEFAULT_UPCALL_LIMIT } = options;
    this.trace('evd.modifyUpcall', { policy, handler, ...options });
    this.checkOpen('evd.modifyUpcall');
    const next = handler === UPCALL_SAME ? this.upcalls.handler : (handler ?? undefined);
    checkUpcall('evd.modifyUpcall', policy, next, limit);
    checkPending(pending);
    checkCaller('evd.modifyUpcall', options.upcall);
    if (policy === 'TEARDOWN') this.checkOutside('evd.modifyUpcall', options.upcall);
    const gate = this.upcalls.gate;
    if (UPCALL_POLICIES[policy].enabled) {
      checkTaker('evd.modifyUpcall', this.dispatcher.taker, 'upcall');
      if (pending === 'refuse') this.refuseIfPending();
      // What is in the queue by now is what `keep` keeps; anything found later is new.
      this.store.scan();
    }
    this.upcalls.handler = next;
    gate.setPolicy(policy, limit, pending !== 'keep' && this.store.pending > 0);
    this.engage();
    if (gate.enabled) {
      this.dispatcher.armAndLook();
      this.dispatcher.kick();
    }
    if (policy !== 'TEARDOWN') return;
    return this.drainUpcalls(options.upcall);
  }

  /**
   * Resolves when the upcalls in progress now have ended, but for `upcall` (an upcall of any EVD;
   * in the synchronous part of a handler: that upcall) and for those that wait likewise.
   */
  drainUpcalls(upcall: Upcall | undefined = currentUpcall()): Promise<void> {
    return new Promise((resolve) => {
      this.checkOutside('evd.drainUpcalls', upcall);
      this.upcalls.gate.drain(upcall, resolve);
    });
  }

  /**
   * @internal the adapter is being closed: frees the EVD at once; resolves when its upcalls have
   * ended, but for those that wait for the close themselves
   */
  end(callers: ReadonlySet<Upcall>): Promise<void> {
    if (this.open) this.close();
    return new Promise((resolve) => this.upcalls.gate.drainJointly(callers, resolve));
  }

  /** @internal this upcall waits for the close too */
  joinEnd(upcall: Upcall): void {
    this.upcalls.gate.join(upcall);
  }

  // States

  /**
   * Lets the CNO be notified and upcalls start again (dat_evd_enable); what has come in between
   * notifies, or fires them.
   */
  enable(): void {
    this.trace('evd.enable', {});
    this.checkOpen('evd.enable');
    this.setTriggering('enable');
    this.dispatcher.armAndLook();
    this.dispatcher.kick();
  }

  /**
   * The CNO is not notified, and no upcall starts, any more (dat_evd_disable); a waiter, an
   * iteration and `events$` are not concerned.
   */
  disable(): void {
    this.trace('evd.disable', {});
    this.checkOpen('evd.disable');
    this.setTriggering('disable');
  }

  /**
   * Names the CNO that is notified of events which nothing takes (dat_evd_modify_cno); null for
   * none. Events that wait notify it too. What the former CNO has been notified of stays with it.
   * @throws DatError DAT_INVALID_HANDLE / DAT_INVALID_HANDLE_CNO unless a live one of this adapter
   */
  modifyCno(cno: Cno | null): void {
    this.trace('evd.modifyCno', { cno: cno?.id ?? 'null' });
    this.checkOpen('evd.modifyCno');
    checkCno('evd.modifyCno', cno, this.host);
    this.setCno(cno);
    this.engage();
  }

  /**
   * Changes the length of both queues; no event is lost.
   * @throws DatError DAT_INVALID_STATE when more events wait, DAT_INVALID_PARAMETER,
   * DAT_INSUFFICIENT_RESOURCES
   */
  resize(qlen: number): void {
    const operation = 'evd.resize';
    this.trace(operation, { qlen });
    this.checkOpen(operation);
    const limit = this.host.device.attributes.maxCompletionQueueEntries;
    checkInteger(operation, 2, 'qlen', qlen, 1, limit);
    this.store.scan();
    const waited = this.dispatcher.waiter?.threshold ?? 0;
    const present = Math.max(this.store.pending, waited);
    if (present > qlen) {
      const verb = present === waited ? 'are waited for' : 'wait';
      const message = `qlen ${qlen}: ${present} events ${verb}`;
      throw new DatError('DAT_INVALID_STATE', { operation, message, value: qlen });
    }
    const tooMany = { EINVAL: ['DAT_INVALID_STATE'] } as const;
    const context = { operation, value: qlen, map: tooMany };
    spiCall(context, () => this.store.resize(qlen, qlen + this.reserved));
    this.arm?.forget();
    this.dispatcher.armAndLook();
  }

  query(): EvdParam {
    this.checkOpen('evd.query');
    this.store.scan();
    this.lookAround();
    const gate = this.upcalls.gate;
    return {
      id: this.id,
      qlen: this.store.qlen,
      state:
        EVD_SUBSTATES[gate.blocked ? 'DISABLED' : 'ENABLED'].bit |
        EVD_SUBSTATES[this.waiting].bit |
        EVD_CONFIGURATIONS[this.dispatcher.configuration].state,
      streams: this.streams,
      cno: this.cno,
      policy: gate.policy,
      upcallLimit: gate.limit,
      upcallsInProgress: gate.inProgress,
      taker: this.dispatcher.taker,
      pending: this.store.pending,
      users: this.users,
      dropped: this.store.dropped,
      staleNotifications: this.arm?.stale ?? 0,
    };
  }

  // Software events and the end

  /**
   * Queues a software event (dat_evd_post_se).
   * @throws DatError DAT_QUEUE_FULL; DAT_INVALID_PARAMETER without EvdFlags.SOFTWARE
   */
  postSe(payload: unknown): void {
    const operation = 'evd.postSe';
    this.trace(operation, { payload });
    this.checkOpen(operation);
    if ((this.streams & EvdFlags.SOFTWARE) === 0) {
      throw new DatError('DAT_INVALID_PARAMETER', {
        subtype: 'DAT_INVALID_ARG1',
        operation,
        message: 'the EVD was created without EvdFlags.SOFTWARE',
        value: this.streams,
      });
    }
    if (
      !this.store.post({ type: 'software', number: DatEventNumber.SOFTWARE, payload }, 'behind')
    ) {
      const message = `all ${this.store.qlen} events of the queue wait`;
      throw new DatError('DAT_QUEUE_FULL', { operation, message, value: this.store.qlen });
    }
  }

  /**
   * Frees the EVD at once: what is queued is lost, a waiter gets DAT_ABORT, an iteration and
   * `events$` end, no upcall starts any more. The promise resolves when the upcalls in progress
   * have ended (see `drainUpcalls`).
   *
   * Rejects with DatError DAT_INVALID_STATE_EVD_IN_USE while endpoints or others feed it, and
   * DAT_INVALID_HANDLE when it was freed before.
   */
  async free(options: { readonly upcall?: Upcall } = {}): Promise<void> {
    this.trace('evd.free', {});
    checkOptions('evd.free', 2, options, ['upcall']);
    this.checkOutside('evd.free', options.upcall);
    if (!this.open && this.upcalls.gate.inProgress === 0) throw invalidHandle('evd.free');
    if (this.open) this.close();
    await this.drainUpcalls(options.upcall ?? currentUpcall());
  }

  /** Frees the EVD unless that has been done. */
  async [Symbol.asyncDispose](): Promise<void> {
    if (this.open) await this.free();
  }

  protected override upcallOwner(): UpcallOwner {
    return this;
  }

  private checkOutside(operation: string, upcall: Upcall | undefined): void {
    checkCaller(operation, upcall);
    if (upcall !== undefined || currentUpcall() !== undefined) return;
    checkNotAwaited(operation, this.upcalls.caller());
  }

  private setTriggering(call: 'enable' | 'disable'): void {
    const { gate } = this.upcalls;
    gate.blocked = EVD_SUBSTATES[gate.blocked ? 'DISABLED' : 'ENABLED'][call] === 'DISABLED';
  }

  private setCno(cno: Cno | null): void {
    if (cno === this.cno) return;
    this.cno?.detach(this);
    this.cno = cno;
    cno?.attach(this);
    this.dispatcher.cno = cno === null ? undefined : { notify: () => cno.notify(this) };
    if (cno !== null && this.store.pending > 0) this.dispatcher.alert();
  }

  private close(): void {
    const operation = 'evd.free';
    this.checkUnused(operation);
    const inUse = { EBUSY: ['DAT_INVALID_STATE', 'DAT_INVALID_STATE_EVD_IN_USE'] } as const;
    spiCall({ operation, map: inUse }, () => this.cq?.destroy());
    this.open = false;
    this.dispatcher.close();
    this.upcalls.gate.setPolicy('TEARDOWN', 0, false);
    this.store.clear();
    this.dropWaiter()?.freed();
    const sink = this.dispatcher.sink;
    this.dispatcher.sink = undefined;
    if (sink !== undefined) this.host.scheduler.defer(() => sink.complete());
    this.dispatcher.iterating = false;
    this.setCno(null);
    this.engage();
    this.host.onEvdFreed(this);
  }

  /**
   * Arms, polls, then counts: counting first would lose what the device completes in between. The
   * notification that may come of it is absorbed.
   */
  private refuseIfPending(): void {
    this.dispatcher.armAhead();
    this.store.scan();
    const pending = this.store.pending;
    if (pending === 0) return;
    throw new DatError('DAT_INVALID_STATE', {
      operation: 'evd.modifyUpcall',
      message: `${pending} events wait`,
      value: pending,
      hint: 'dequeue them and ask again',
    });
  }
}

function checkCaller(operation: string, upcall: unknown): void {
  const isUpcall = upcall === undefined || upcall instanceof Upcall;
  checkParameter(operation, 4, 'upcall', upcall, isUpcall, 'an Upcall');
}
