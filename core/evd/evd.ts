/** The event dispatcher: one queue fed by streams of events, consumed by pull, push or upcall. */
import { showAs, Symbolic } from '../spi/checks/index.js';
import { DatError, spiCall } from '../errors/index.js';
import { eventStream, type EventStream } from '../stream/event-stream.js';
import type { PollingMode } from '../spi/index.js';
import { checkCno, type Cno } from './cno/cno.js';
import { argumentSubtype } from '../errors/call-arguments.js';
import { checkInteger, checkOptions, checkParameter, checkReset } from '../errors/guards.js';
import { checkSubscriber, checkTaker } from './common/checks.js';
import {
  EVD_CONFIGURATIONS,
  EVD_SUBSTATES,
  EvdFlags,
  type EventConsumerKind,
} from './common/evd-states.js';
import {
  checkEvdOptions,
  checkPending,
  checkPolling,
  checkUpcall,
  invalidHandle,
} from './evd-checks.js';
import type { EvdCounterValues } from './evd-counters.js';
import { EvdFeed } from './evd-feed.js';
import type {
  EvdHost,
  EvdOptions,
  ModifyUpcallOptions,
  WaitOptions,
  WaitResult,
} from './evd-host.js';
import { EvdPull } from './evd-pull.js';
import { EvdRecord } from './evd-record.js';
import { SoftwarePost } from './events/event-classes.js';
import type { DatEvent } from './events/event.js';
import { type Batches, BatchIterator } from './queue/batch-iterator.js';
import type { EventBatch } from './queue/event-batch.js';
import type { EventSink, EventSource } from './queue/event-sink.js';
import { DEFAULT_UPCALL_LIMIT, UPCALL_SAME, type UpcallPolicy } from './upcall/policy.js';
import { callingUpcall, type UpcallLessee } from './upcall/runner.js';
import { type NotifyHandler, Upcall, type UpcallHandler } from './upcall/upcall.js';

/** Result of `evd.query()` (DAT_EVD_PARAM). */
export interface EvdParam {
  readonly id: number;
  readonly qlen: number;
  /** Bit set of EvdState. */
  readonly state: number;
  /** Bit set of EvdFlags. */
  readonly streams: number;
  /** CNO notified of events without a consumer; null for none. */
  readonly cno: Cno | null;
  readonly policy: UpcallPolicy;
  /** Upcalls at a time under the policy; 0 when it is not enabled. */
  readonly upcallLimit: number;
  readonly upcallsInProgress: number;
  readonly taker: EventConsumerKind;
  /** Queued events. */
  readonly pending: number;
  /** Endpoints, service points and adapters that feed it. */
  readonly users: number;
  /** Completions lost because their endpoint was freed before they were dequeued. */
  readonly dropped: number;
  /** Notifications absorbed because they came too late. */
  readonly staleNotifications: number;
}

const UPCALL_OPTIONS = ['pending', 'limit', 'upcall'];
/** No limit but the batch's own. */
const MAX_EVENTS = 0x7fffffff;

type Handler = UpcallHandler | NotifyHandler;
type HandlerOrSame = Handler | typeof UPCALL_SAME | null;

/** Made by `ia.createEvd()`. */
export class Evd implements EventSource, AsyncIterable<readonly DatEvent[]>, AsyncDisposable {
  static {
    showAs(this, 'Evd', ({ id, qlen, record, feed, isFreed: freed }) => {
      const pending = new Symbolic(`${freed ? 0 : record.store.pending}/${qlen}`);
      return { id, pending, taker: record.dispatcher.taker, users: feed.users, freed };
    });
  }

  readonly handleType = 'EVD';
  /** For the consumer's use (dat_set_consumer_context). */
  consumerContext: unknown = undefined;
  /** @internal what endpoints, service points and the adapter use */
  readonly feed: EvdFeed;
  private readonly record: EvdRecord;
  private readonly pull: EvdPull;
  private stream: EventStream | undefined = undefined;

  /**
   * @internal use `ia.createEvd`
   * @throws DatError DAT_INVALID_PARAMETER (qlen, streams, policy, handler, limit),
   * DAT_INSUFFICIENT_RESOURCES when the device has no such completion queue
   */
  constructor(host: EvdHost, options: EvdOptions) {
    checkEvdOptions('ia.createEvd', options);
    const { policy = 'DISABLE', handler, limit = DEFAULT_UPCALL_LIMIT, cno = null } = options;
    checkCno('ia.createEvd', cno, host);
    const record = new EvdRecord(this, host, options);
    this.record = record;
    this.feed = new EvdFeed(record);
    this.pull = new EvdPull(record);
    try {
      record.setPolling(options.polling ?? 'event');
      record.upcalls.handler = handler;
      record.upcalls.gate.setPolicy(policy, limit, false);
      record.setCno(cno);
      record.engage();
      record.dispatcher.armAndLook();
    } catch (error) {
      record.abandon();
      throw error;
    }
  }

  get id(): number {
    return this.record.id;
  }

  /** Bit set of EvdFlags. */
  get streams(): number {
    return this.record.streams;
  }

  /**
   * Limit of queued events; also the part of the completion queue for the consumer.
   */
  get qlen(): number {
    return this.record.store.qlen;
  }

  get isFreed(): boolean {
    return !this.record.open;
  }

  /**
   * Lets consumers of its events (a waiter, an iteration, a subscription, upcalls) keep the process
   * alive: the default. @returns itself
   */
  ref(): this {
    this.record.keepProcess(true);
    return this;
  }

  /** Lets the process exit while its events are awaited, as `unref` of node:net. */
  unref(): this {
    this.record.keepProcess(false);
    return this;
  }

  /** True if consumers of its events keep the process alive. */
  hasRef(): boolean {
    return this.record.hasRef;
  }

  // Pull

  /**
   * Takes the oldest event; undefined is DAT_QUEUE_EMPTY. Always legal. In polling mode 'spin' an
   * empty queue drives the device once.
   * @throws DatError DAT_INVALID_HANDLE when freed
   */
  dequeue(): DatEvent | undefined {
    return this.pull.dequeue();
  }

  /**
   * Takes up to `max` events (default: as many as the batch holds) into a reused batch, without
   * making objects of DTO completions.
   * @returns how many, also in `batch.count`
   * @throws DatError DAT_INVALID_HANDLE when freed
   */
  dequeueInto(batch: EventBatch, max: number = MAX_EVENTS): number {
    return this.pull.dequeueInto(batch, max);
  }

  /**
   * Waits until `threshold` events are queued, and takes the oldest (dat_evd_wait).
   *
   * Rejects with DatError: DAT_TIMEOUT_EXPIRED (nothing taken; `value.nmore` events wait),
   * DAT_INTERRUPTED_CALL when `signal` fires, DAT_ABORT when the EVD is freed, DAT_INVALID_STATE
   * when something else takes the events, the EVD is or becomes unwaitable, or `threshold` > 1 does
   * not suit its configuration, DAT_INVALID_PARAMETER.
   */
  wait(options: WaitOptions = {}): Promise<WaitResult<DatEvent>> {
    return this.pull.wait(options);
  }

  /**
   * `for await (const batch of evd)`: all queued events in order, at least one. Ends when the EVD
   * is freed. If the loop is left (`break`, `return`, an error), the unread rest of its last batch
   * stays in the EVD, in order.
   */
  [Symbol.asyncIterator](): Batches {
    return new BatchIterator(this.pull);
  }

  /** Ends the waiter, and every later one, with DAT_INVALID_STATE_EVD_UNWAITABLE. */
  setUnwaitable(): void {
    this.record.begin('evd.setUnwaitable');
    this.pull.setUnwaitable();
  }

  clearUnwaitable(): void {
    this.record.begin('evd.clearUnwaitable');
    this.pull.clearUnwaitable();
  }

  /** How completions reach core: by wake-ups, by polling for a while, or only by dequeueing. */
  setPolling(mode: PollingMode): void {
    this.record.begin('evd.setPolling', { mode });
    checkPolling('evd.setPolling', mode);
    this.record.setPolling(mode);
  }

  /**
   * Counts of dequeues, waits and notifications (dat_ib_query_counters on an EVD).
   * @param options `reset`: the counters begin again at 0; what was counted is returned
   * @throws DatError DAT_INVALID_HANDLE when freed; DAT_INVALID_PARAMETER
   */
  counters(options: { readonly reset?: boolean } = {}): EvdCounterValues {
    const operation = 'evd.counters';
    this.record.begin(operation, { reset: options?.reset });
    return this.record.counts.read(checkReset(operation, options));
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
    const { record } = this;
    const { dispatcher } = record;
    record.begin('evd.subscribe');
    checkTaker('evd.subscribe', dispatcher.taker, 'subscription');
    dispatcher.sink = sink;
    record.engage();
    dispatcher.alert();
    return () => {
      if (dispatcher.sink !== sink) return;
      dispatcher.sink = undefined;
      record.engage();
    };
  }

  // Upcalls

  /**
   * Changes policy and handler, from the next upcall on (dat_evd_modify_upcall). DISABLE: no upcall
   * starts after this has returned. TEARDOWN: the promise resolves when the upcalls in progress
   * have ended. It does not wait for `options.upcall` (default: the upcall whose handler makes the
   * call, or awaits the code that does), nor for upcalls of any EVD that wait likewise.
   * @param handler default UPCALL_SAME; null takes the handler away
   * @throws DatError DAT_INVALID_PARAMETER, also for a `limit` unless MANY, and `pending` under a
   * policy that starts no upcalls; DAT_INVALID_STATE while something else takes the events, or when
   * `pending` is 'refuse' and events wait
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
    const operation = 'evd.modifyUpcall';
    const { record } = this;
    checkOptions(operation, options, UPCALL_OPTIONS);
    const { pending, limit, upcall } = options;
    record.begin(operation, { policy, handler, ...options });
    const next = handler === UPCALL_SAME ? record.upcalls.handler : (handler ?? undefined);
    checkUpcall(operation, policy, next, limit);
    checkPending(policy, pending);
    checkCaller(operation, upcall);
    record.setPolicy(policy, next, limit ?? DEFAULT_UPCALL_LIMIT, pending ?? 'deliver');
    if (policy !== 'TEARDOWN') return;
    return this.drainUpcalls(upcall);
  }

  /**
   * Resolves when the upcalls in progress now have ended. It does not wait for `upcall` (of any
   * EVD; default: the one whose handler makes the call, or awaits the code that does), nor for
   * upcalls that wait likewise.
   */
  drainUpcalls(upcall?: Upcall): Promise<void> {
    return new Promise((resolve) => {
      checkCaller('evd.drainUpcalls', upcall);
      this.record.upcalls.gate.drain(upcall ?? callingUpcall(), resolve);
    });
  }

  /**
   * @internal a stream takes the upcalls for itself, until `giveUpcalls`, or until `upcallsLost`
   * @throws DatError as `modifyUpcall`; DAT_INVALID_STATE while other upcalls are enabled, or
   * another stream has them
   */
  leaseUpcalls(
    lessee: UpcallLessee,
    policy: 'DISABLE' | 'ONE' | 'MANY' | 'NOTIFY',
    handler: UpcallHandler,
    options: ModifyUpcallOptions,
  ): void {
    const { upcalls, dispatcher } = this.record;
    this.record.checkOpen('upcalls');
    checkSubscriber('upcalls', upcalls.lessee !== undefined);
    if (dispatcher.taker === 'upcall') {
      const message = 'upcalls of another handler are enabled';
      const hint = "evd.modifyUpcall('DISABLE') first";
      throw new DatError('DAT_INVALID_STATE', { operation: 'upcalls', message, hint });
    }
    this.modifyUpcall(policy as 'ONE', handler, options);
    upcalls.lessee = lessee;
  }

  /** @internal true if the stream still has the upcalls */
  hasLeased(lessee: UpcallLessee): boolean {
    return this.record.upcalls.lessee === lessee;
  }

  /** @internal ends a stream: TEARDOWN, and the handler is forgotten */
  giveUpcalls(lessee: UpcallLessee): void {
    if (!this.hasLeased(lessee)) return;
    this.record.trace('evd.modifyUpcall', { policy: 'TEARDOWN' });
    this.record.upcalls.lessee = undefined;
    this.record.setPolicy('TEARDOWN', undefined, 0, 'deliver');
  }

  /** @internal puts back events that were taken and not handed on, in front of all others */
  putBack(events: readonly DatEvent[]): void {
    this.pull.putBack(events);
  }

  /**
   * @internal frees the EVD for the close of the adapter; resolves when its upcalls have ended,
   * except those that wait for the close themselves
   */
  end(callers: ReadonlySet<Upcall>): Promise<void> {
    if (!this.isFreed) this.close();
    return new Promise((resolve) => this.record.upcalls.gate.drainJointly(callers, resolve));
  }

  /** @internal this upcall waits for the close too */
  joinEnd(upcall: Upcall): void {
    this.record.upcalls.gate.join(upcall);
  }

  // States

  /**
   * Enables notifications of the CNO and upcalls again (dat_evd_enable). Events from in between
   * notify, or start upcalls.
   */
  enable(): void {
    this.record.begin('evd.enable');
    this.setTriggering('enable');
    this.record.lookAndKick();
  }

  /**
   * Stops notifications of the CNO and new upcalls (dat_evd_disable). Waiters, iterations and
   * `events$` still work.
   */
  disable(): void {
    this.record.begin('evd.disable');
    this.setTriggering('disable');
  }

  /**
   * Sets the CNO that is notified of events without a consumer (dat_evd_modify_cno); null for none.
   * Queued events notify it too. Notifications of the former CNO stay with it.
   * @throws DatError DAT_INVALID_HANDLE / DAT_INVALID_HANDLE_CNO unless a live one of this adapter
   */
  modifyCno(cno: Cno | null): void {
    this.record.begin('evd.modifyCno', { cno: cno?.id ?? 'null' });
    checkCno('evd.modifyCno', cno, this.record.host);
    this.record.setCno(cno);
    this.record.engage();
  }

  /**
   * Changes the length of both queues; no event is lost.
   * @throws DatError DAT_INVALID_STATE when more events wait, DAT_INVALID_PARAMETER,
   * DAT_INSUFFICIENT_RESOURCES
   */
  resize(qlen: number): void {
    const operation = 'evd.resize';
    const { record, feed } = this;
    const { store, dispatcher } = record;
    record.begin(operation, { qlen });
    const limit = record.host.device.attributes.maxCompletionQueueEntries;
    checkInteger(operation, 'qlen', qlen, 1, limit);
    store.scan();
    const waited = dispatcher.waiter?.threshold ?? 0;
    const present = Math.max(store.pending, waited);
    if (present > qlen) {
      const verb = present === waited ? 'are waited for' : 'wait';
      const message = `qlen ${qlen}: ${present} events ${verb}`;
      throw new DatError('DAT_INVALID_STATE', { operation, message, value: qlen });
    }
    const tooMany = { EINVAL: ['DAT_INVALID_STATE'] } as const;
    const context = { operation, value: qlen, map: tooMany };
    spiCall(context, () => store.resize(qlen, qlen + feed.reserved));
    record.ringReplaced();
  }

  query(): EvdParam {
    const { record, pull, feed } = this;
    record.checkOpen('evd.query');
    const { id, streams, store, dispatcher } = record;
    store.scan();
    record.sources.look();
    const { gate } = record.upcalls;
    return {
      id,
      qlen: store.qlen,
      state:
        EVD_SUBSTATES[gate.blocked ? 'DISABLED' : 'ENABLED'].bit |
        EVD_SUBSTATES[pull.waiting].bit |
        EVD_CONFIGURATIONS[dispatcher.configuration].state,
      streams,
      cno: dispatcher.cno ?? null,
      policy: gate.policy,
      upcallLimit: gate.limit,
      upcallsInProgress: gate.inProgress,
      taker: dispatcher.taker,
      pending: store.pending,
      users: feed.users,
      dropped: store.dropped,
      staleNotifications: record.arm?.stale ?? 0,
    };
  }

  // Software events and the end

  /**
   * Queues a software event (dat_evd_post_se).
   * @throws DatError DAT_QUEUE_FULL; DAT_INVALID_PARAMETER without EvdFlags.SOFTWARE
   */
  postSe(payload: unknown): void {
    const operation = 'evd.postSe';
    const { streams, store } = this.record;
    this.record.begin(operation, { payload });
    if ((streams & EvdFlags.SOFTWARE) === 0) {
      throw new DatError('DAT_INVALID_PARAMETER', {
        subtype: argumentSubtype(operation, 'evd'),
        operation,
        message: 'the EVD was created without EvdFlags.SOFTWARE',
        hint: 'create it with streams that have EvdFlags.SOFTWARE',
        value: streams,
      });
    }
    if (!store.post(new SoftwarePost(payload), 'behind')) {
      const message = `all ${store.qlen} events of the queue wait`;
      const hint = 'dequeue events, or resize the EVD';
      throw new DatError('DAT_QUEUE_FULL', { operation, message, hint, value: store.qlen });
    }
  }

  /**
   * Frees the EVD immediately: queued events are lost, a waiter gets DAT_ABORT, an iteration and
   * `events$` end, and no more upcalls start. The promise resolves when the upcalls in progress
   * have ended (see `drainUpcalls`).
   *
   * Rejects with DatError DAT_INVALID_STATE_EVD_IN_USE while endpoints or others feed it, and
   * DAT_INVALID_HANDLE when it was freed before.
   */
  async free(options: { readonly upcall?: Upcall } = {}): Promise<void> {
    const operation = 'evd.free';
    this.record.trace(operation, {});
    checkOptions(operation, options, ['upcall']);
    checkCaller(operation, options.upcall);
    if (!this.isFreed) this.close();
    else if (this.record.upcalls.gate.inProgress === 0) throw invalidHandle(operation);
    await this.drainUpcalls(options.upcall);
  }

  /** Frees the EVD unless it is freed. */
  async [Symbol.asyncDispose](): Promise<void> {
    if (!this.isFreed) await this.free();
  }

  private setTriggering(call: 'enable' | 'disable'): void {
    const { gate } = this.record.upcalls;
    gate.blocked = EVD_SUBSTATES[gate.blocked ? 'DISABLED' : 'ENABLED'][call] === 'DISABLED';
  }

  private close(): void {
    const { record, feed } = this;
    const operation = 'evd.free';
    feed.checkUnused(operation);
    const inUse = { EBUSY: ['DAT_INVALID_STATE', 'DAT_INVALID_STATE_EVD_IN_USE'] } as const;
    spiCall({ operation, map: inUse }, () => record.cq?.destroy());
    record.close();
    record.host.onEvdFreed(this);
  }
}

function checkCaller(operation: string, upcall: unknown): void {
  const isUpcall = upcall === undefined || upcall instanceof Upcall;
  checkParameter(operation, 'upcall', upcall, isUpcall, 'an Upcall');
}
