/** The producers' side of an EVD: what endpoints, service points and the interface adapter use. */
import { DatError, spiCall } from '../errors/index.js';
import { AsyncEventType, type CompletionQueue, nameOf } from '../spi/index.js';
import { ArmController } from './queue/arm-controller.js';
import { Counters } from './common/counters.js';
import { Dispatcher } from './dispatcher.js';
import type { DatEvent, PostedEvent } from './events/event.js';
import { type EventPlace, EventStore } from './queue/event-store.js';
import { checkQlen, checkStreams } from './evd-checks.js';
import { EVD_COUNTER, EVD_COUNTERS, type EvdCounterName } from './evd-counters.js';
import { evdError, type EvdErrorKind } from './evd-errors.js';
import type { EvdHost, EvdOptions } from './evd-host.js';
import {
  COMPLETION_STREAMS,
  EVD_CONFIGURATIONS,
  type EvdConfiguration,
  EvdFlags,
} from './common/evd-states.js';
import type { UpcallOwner } from './upcall/upcall.js';
import { UpcallRunner } from './upcall/runner.js';
import { unhandled } from './common/unhandled.js';

/** Other EVDs that a poll looks at when it has found nothing, of as many as there are. */
const SOURCES_A_POLL = 16;

/** What must know that completions are lost. */
export interface OverrunListener {
  /** @param evd number of the event dispatcher whose completion queue has overrun */
  onOverrun(evd: number): void;
}

export abstract class EvdFeed {
  readonly id: number;
  /** Bit set of EvdFlags. */
  readonly streams: number;
  /** Present iff completions feed the EVD; queue pairs are created on it. */
  readonly cq: CompletionQueue | undefined;
  protected readonly store: EventStore;
  protected readonly upcalls: UpcallRunner;
  protected readonly arm: ArmController | undefined;
  protected readonly dispatcher: Dispatcher;
  protected users = 0;
  protected readonly counts = new Counters<EvdCounterName>(EVD_COUNTERS);
  protected open = true;
  private readonly errorSources = new Map<EvdFeed, number>();
  /** Where polls go on to look. */
  private round: Iterator<EvdFeed, undefined> = this.errorSources.keys();
  private readonly overrunListeners = new Set<OverrunListener>();
  protected reserved = 0;
  private configuring = 0;
  /** Users whose events are no completions. */
  private plainUsers = 0;
  private engaged = false;
  private vigilant = false;
  private overflowing = false;

  constructor(
    protected readonly host: EvdHost,
    options: EvdOptions,
  ) {
    const { qlen, streams = EvdFlags.DEFAULT } = options;
    const { maxCompletionQueueEntries, reportsSolicited = false } = host.device.attributes;
    checkQlen(qlen, maxCompletionQueueEntries);
    checkStreams(streams);
    this.id = options.id;
    this.streams = streams;
    this.cq = (streams & COMPLETION_STREAMS) === 0 ? undefined : this.createCq(qlen);
    this.store = new EventStore(qlen, this.cq, host.owners, reportsSolicited, (notice) => {
      this.dispatcher.arrived(notice);
    });
    this.upcalls = new UpcallRunner(
      this.upcallOwner(),
      this.store,
      (error, event) => this.handlerFailed(error, event),
      () => this.dispatcher.kick(),
    );
    this.arm = this.cq && this.createArm(this.cq);
    this.dispatcher = new Dispatcher(this.store, this.upcalls, this.arm, host.scheduler, (cause) =>
      this.unreadable(cause),
    );
  }

  /**
   * Queues an event; see EventPlace for where. Returns false when there was no room: the event is
   * lost, and EVD_OVERFLOW with this EVD is on the asynchronous EVD.
   */
  post(event: PostedEvent, place: EventPlace = 'behind'): boolean {
    if (!this.open) return false;
    this.counts.count('posted');
    if (event.type === 'connection') this.counts.count('connectionNotify');
    if (this.store.post(event, place)) {
      this.overflowing = false;
      return true;
    }
    this.overflowed(event);
    return false;
  }

  /**
   * Looks at the completion queue: endpoints see what has come (`onCompletion`). Returns how many
   * new events the consumer may see.
   */
  scan(): number {
    if (!this.open) return 0;
    try {
      return this.store.scan();
    } catch (cause) {
      this.unreadable(cause);
      return 0;
    }
  }

  /** Drops and counts completions of a context that were not taken; before `owners.free`. */
  purge(context: number, srqn?: number): void {
    if (this.open) this.store.purge(context, srqn);
  }

  /**
   * Counts a user: while there is one the EVD cannot be freed.
   * @param configuration how the completions of this user notify: NOTIFY if some may be
   * UNSIGNALLED, SOLICITED, or THRESHOLD; none for a stream of other events. All users must agree,
   * and other events go with THRESHOLD only (DAT facts 4.1)
   * @returns ends the use; calling it again does nothing
   * @throws DatError DAT_INVALID_STATE (DAT_INVALID_STATE_EVD_CONFIG_*) when they do not
   */
  attach(configuration?: EvdConfiguration): () => void {
    this.addUser(configuration);
    return once(() => this.removeUser(configuration));
  }

  /** `attach` for what remembers by itself, as thousands of endpoints do. */
  addUser(configuration?: EvdConfiguration): void {
    this.checkAgreement(configuration);
    this.users++;
    if (configuration === undefined) this.plainUsers++;
    else this.configure(configuration, 1);
  }

  removeUser(configuration?: EvdConfiguration): void {
    this.users--;
    if (configuration === undefined) this.plainUsers--;
    else this.configure(configuration, -1);
  }

  private checkAgreement(wanted: EvdConfiguration = 'THRESHOLD'): void {
    const present = this.dispatcher.configuration;
    const others = this.configuring > 0 || this.plainUsers > 0;
    if (wanted === present || !others) return;
    throw new DatError('DAT_INVALID_STATE', {
      subtype: EVD_CONFIGURATIONS[present].subtype,
      operation: 'evd.attach',
      message: `a stream of kind ${wanted} on an EVD whose other streams are ${present}`,
      value: wanted,
      hint: 'use one EVD for each kind of completion flags, and another for other events',
    });
  }

  /**
   * For an EVD of an endpoint: while a waiter, subscription or upcall takes its events, `source` (a
   * DTO EVD of the same endpoint) is armed for failed completions even though nothing wants its
   * events, so that the endpoint notices a failure and breaks without a dequeue. A poll that finds
   * nothing looks there, too.
   * @returns ends it; calling it again does nothing
   */
  watchErrors(source: EvdFeed): () => void {
    this.addErrorSource(source);
    return once(() => this.removeErrorSource(source));
  }

  addErrorSource(source: EvdFeed): void {
    if (source === this) return;
    const count = this.errorSources.get(source) ?? 0;
    this.errorSources.set(source, count + 1);
    if (count === 0 && this.vigilant) source.watched(1);
  }

  removeErrorSource(source: EvdFeed): void {
    if (source === this) return;
    const left = (this.errorSources.get(source) ?? 1) - 1;
    if (left > 0) this.errorSources.set(source, left);
    else if (this.errorSources.delete(source) && this.vigilant) source.watched(-1);
  }

  /**
   * Takes completions in as they come, whether or not anybody wants the events: an endpoint that
   * ends waits for its queues to run empty, and the consumer may never dequeue.
   * @returns ends it; calling it again does nothing
   */
  hold(): () => void {
    this.dispatcher.holders++;
    if (this.open) this.dispatcher.armAndLook();
    return once(() => this.dispatcher.holders--);
  }

  /**
   * Makes room in the completion queue for completions that the consumer does not count.
   * @returns gives the room back; calling it again does nothing
   */
  reserve(entries: number): () => void {
    this.addReserve(entries);
    return once(() => this.removeReserve(entries));
  }

  addReserve(entries: number): void {
    const needed = this.store.qlen + this.reserved + entries;
    if (this.cq !== undefined && this.cq.ring.entries < needed) {
      spiCall({ operation: 'evd.reserve', value: needed }, () => this.store.resizeCq(needed));
      this.arm?.forget();
      this.dispatcher.armAndLook();
    }
    // Last: a call that fails has made no room, and there is nothing to give back.
    this.reserved += entries;
  }

  removeReserve(entries: number): void {
    this.reserved -= entries;
  }

  /**
   * The completion queue has overrun: completions are lost, and what feeds it is broken.
   * @returns ends it
   */
  onOverrun(listener: OverrunListener): () => void {
    this.addOverrunListener(listener);
    return () => this.removeOverrunListener(listener);
  }

  addOverrunListener(listener: OverrunListener): void {
    this.overrunListeners.add(listener);
  }

  removeOverrunListener(listener: OverrunListener): void {
    this.overrunListeners.delete(listener);
  }

  /** @internal something feeds it */
  get isInUse(): boolean {
    return this.users > 0;
  }

  get isFreed(): boolean {
    return !this.open;
  }

  /** @internal something takes its events, or has asked for them: what is posted will be seen */
  get isHeeded(): boolean {
    const { taker, waiter, cno } = this.dispatcher;
    if (!this.open) return false;
    if (taker !== 'none' || waiter !== undefined || cno !== undefined) return true;
    return this.counts.get(EVD_COUNTER.DEQUEUE) > 0;
  }

  /**
   * Events that wait at most; also the length of the completion queue that the consumer counts on.
   */
  get qlen(): number {
    return this.store.qlen;
  }

  /** The object that upcalls of this EVD belong to. */
  protected abstract upcallOwner(): UpcallOwner;

  /** Something takes events, or has stopped: counts as a reason to live, and watches for errors. */
  protected engage(): void {
    const { waiter, taker, cno } = this.dispatcher;
    const engaged = this.open && (waiter !== undefined || taker !== 'none');
    if (engaged !== this.engaged) {
      this.engaged = engaged;
      if (engaged) this.host.processHold.retain();
      else this.host.processHold.release();
    }
    this.watch(engaged || (this.open && cno !== undefined));
    this.dispatcher.takerChanged();
  }

  /** Failures on the queues of the same endpoints are looked for, or not. */
  private watch(vigilant: boolean): void {
    if (vigilant === this.vigilant) return;
    this.vigilant = vigilant;
    for (const source of this.errorSources.keys()) source.watched(vigilant ? 1 : -1);
  }

  /**
   * For a poll that has found nothing: failures in other queues of the same endpoints are taken in.
   * Of many, each poll looks at the next few.
   */
  protected lookAround(): void {
    for (let left = Math.min(SOURCES_A_POLL, this.errorSources.size); left > 0; left--) {
      let { value } = this.round.next();
      if (value === undefined) {
        this.round = this.errorSources.keys();
        ({ value } = this.round.next());
      }
      value?.scan();
    }
  }

  /**
   * Failed completions are taken in as they come, whether or not anything wants the events.
   * @returns ends it; calling it again does nothing
   */
  watchFailures(): () => void {
    this.watched(1);
    return once(() => this.watched(-1));
  }

  private watched(change: 1 | -1): void {
    this.dispatcher.watchers += change;
    if (change > 0 && this.open) this.dispatcher.armAndLook();
  }

  private configure(configuration: EvdConfiguration, change: 1 | -1): void {
    this.configuring += change;
    this.dispatcher.configuration = this.configuring > 0 ? configuration : 'THRESHOLD';
    if (this.open) this.dispatcher.armAndLook();
  }

  private createCq(minEntries: number): CompletionQueue {
    const context = {
      operation: 'ia.createEvd',
      value: minEntries,
      map: { ENOMEM: ['DAT_INSUFFICIENT_RESOURCES', 'DAT_RESOURCE_TEVD'] },
    } as const;
    return spiCall(context, () =>
      this.host.device.createCompletionQueue({
        minEntries,
        onNotify: () => {
          this.counts.bump(EVD_COUNTER.DTO_NOTIFY, 1);
          this.dispatcher.notified();
        },
        onEvent: (event) => this.cqEvent(event),
      }),
    );
  }

  private unreadable(cause: unknown): void {
    this.report('unreadable', cause);
  }

  private createArm(cq: CompletionQueue): ArmController {
    const arm = (solicitedOnly: boolean): void => cq.arm(solicitedOnly);
    return new ArmController(arm, (cause) => this.report('unarmable', cause));
  }

  private cqEvent(event: AsyncEventType): void {
    const overrun = event === AsyncEventType.CQ_ERR;
    if (overrun) for (const listener of [...this.overrunListeners]) listener.onOverrun(this.id);
    if (overrun) this.report('overrun');
    else this.host.reportAsync(evdError(this, 'other', { detail: nameOf(AsyncEventType, event) }));
  }

  private handlerFailed(cause: unknown, event: DatEvent | undefined): void {
    const failure = evdError(this, 'handler', { cause });
    // The handler of the asynchronous EVD fails while it is told that it has failed: no end of it.
    const again = event?.type === 'async-error' && event.object === this;
    if (again) unhandled(cause);
    else this.host.reportFailure(failure);
  }

  /**
   * Tells once of a run of lost events; the asynchronous EVD itself tells when it has room again.
   */
  private overflowed(event: PostedEvent): void {
    this.counts.count('lost');
    const overflow = evdError(this, 'overflow', { detail: this.store.qlen });
    this.host.logger.warn(overflow.message, { lost: event.type });
    if (event.type === 'async-error') this.store.postLate(overflow);
    else if (!this.overflowing) this.host.reportAsync(overflow);
    this.overflowing = true;
  }

  private report(kind: EvdErrorKind, cause?: unknown): void {
    this.host.reportAsync(evdError(this, kind, { cause }));
  }

  /** @throws DatError DAT_INVALID_STATE_EVD_IN_USE while something feeds the EVD */
  protected checkUnused(operation: string): void {
    if (this.users === 0) return;
    throw new DatError('DAT_INVALID_STATE', {
      subtype: 'DAT_INVALID_STATE_EVD_IN_USE',
      operation,
      message: `${this.users} endpoints, service points or adapters feed this EVD`,
      value: this.users,
      hint: 'free them first',
    });
  }
}

/** Calling it again does nothing. */
function once(undo: () => void): () => void {
  let done = false;
  return () => {
    if (!done) undo();
    done = true;
  };
}
