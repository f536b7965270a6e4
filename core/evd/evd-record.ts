/**
 * The state behind an event dispatcher: its queue, its upcalls, and the pump that hands events to
 * their consumer. The feeding side (evd-feed.ts), the pulling side (evd-pull.ts) and the public
 * class (evd.ts) work on it.
 */
import { DatError, spiCall } from '../errors/index.js';
import { changeHold, hasRef, HOLD } from '../spi/time/hold.js';
import { AsyncEventType, type CompletionQueue, nameOf, type PollingMode } from '../spi/index.js';
import type { Cno } from './cno/cno.js';
import { traceCall } from './common/api-trace.js';
import { checkTaker } from './common/checks.js';
import { Counters } from './common/counters.js';
import { COMPLETION_STREAMS, EvdFlags } from './common/evd-states.js';
import { evdError, type EvdErrorDetails, type EvdErrorKind, unhandled } from './evd-errors.js';
import { Dispatcher } from './dispatcher.js';
import { checkQlen, checkStreams, invalidHandle } from './evd-checks.js';
import { EVD_COUNTER, EVD_COUNTERS, type EvdCounterName } from './evd-counters.js';
import type { EvdHost, EvdOptions } from './evd-host.js';
import type { DatEvent } from './events/event.js';
import { ArmController } from './queue/arm-controller.js';
import { EventStore } from './queue/event-store.js';
import type { NotifyLevel } from './queue/completion-cursor.js';
import { TracedEventStore } from './queue/traced-store.js';
import type { Waiting } from './queue/waiter.js';
import { type PendingChoice, UPCALL_POLICIES, type UpcallPolicy } from './upcall/policy.js';
import { UpcallRunner } from './upcall/runner.js';
import type { NotifyHandler, UpcallHandler } from './upcall/upcall.js';
import type { Evd } from './evd.js';
import type { EvdFeed } from './evd-feed.js';

/** Is told of lost completions. */
export interface OverrunListener {
  /** @param evd number of the event dispatcher whose completion queue has overrun */
  onOverrun(evd: number): void;
}

/** One object for each EVD: its parts report to it, so no closures are needed. */
export class EvdRecord {
  readonly id: number;
  /** Bit set of EvdFlags. */
  readonly streams: number;
  /** Present iff completions feed the EVD. */
  readonly cq: CompletionQueue | undefined;
  readonly store: EventStore;
  readonly upcalls: UpcallRunner;
  readonly arm: ArmController | undefined;
  readonly dispatcher: Dispatcher;
  readonly counts = new Counters<EvdCounterName>(EVD_COUNTERS);
  /** Other EVDs: polls that find nothing look there, and their failures are watched. */
  readonly sources = new ErrorSources();
  readonly overrunListeners = new Set<OverrunListener>();
  polling: PollingMode = 'event';
  open = true;
  /** Bits of HOLD. */
  private hold = 0;

  constructor(
    /** The public object, named in its events. */
    readonly evd: Evd,
    readonly host: EvdHost,
    options: EvdOptions,
  ) {
    const { qlen, streams = EvdFlags.DEFAULT } = options;
    const { maxCompletionQueueEntries, reportsSolicited = false } = host.device.attributes;
    checkQlen(qlen, maxCompletionQueueEntries);
    checkStreams(streams);
    this.id = options.id;
    this.streams = streams;
    this.cq = (streams & COMPLETION_STREAMS) === 0 ? undefined : this.createCq(qlen);
    const store = [qlen, this.cq, host.owners, reportsSolicited, this] as const;
    this.store = host.logger.isDebugEnabled()
      ? new TracedEventStore((fields) => this.trace('event', fields), ...store)
      : new EventStore(...store);
    this.upcalls = new UpcallRunner(this.store, this, host.scheduler);
    this.arm = this.cq && new ArmController(this.cq, this);
    this.dispatcher = new Dispatcher(this.store, this.upcalls, this.arm, host.scheduler, this);
  }

  // Calls

  /** Begins a call: traces it, and checks the handle. @throws DatError DAT_INVALID_HANDLE */
  begin(operation: string, fields: Readonly<Record<string, unknown>> = {}): void {
    this.trace(operation, fields);
    this.checkOpen(operation);
  }

  trace(operation: string, fields: Readonly<Record<string, unknown>>): void {
    if (!this.host.logger.isDebugEnabled()) return;
    traceCall(this.host.logger, operation, { evd: this.id, ...fields });
  }

  /** @throws DatError DAT_INVALID_HANDLE */
  checkOpen(operation: string): void {
    if (!this.open) throw invalidHandle(operation);
  }

  setPolling(mode: PollingMode): void {
    this.polling = mode;
    this.cq?.setPolling(mode);
  }

  /** @throws DatError DAT_INVALID_STATE: something else takes the events, or `refuse` */
  setPolicy(
    policy: UpcallPolicy,
    handler: UpcallHandler | NotifyHandler | undefined,
    limit: number,
    pending: PendingChoice,
  ): void {
    const { gate } = this.upcalls;
    if (UPCALL_POLICIES[policy].enabled) {
      checkTaker('evd.modifyUpcall', this.dispatcher.taker, 'upcall');
      if (pending === 'refuse') this.refuseIfPending();
      // `keep` keeps the events that are in the queue by now; any found later is new.
      this.store.scan();
    }
    if (handler !== this.upcalls.handler || policy === 'TEARDOWN') this.endLease();
    this.upcalls.handler = handler;
    gate.setPolicy(policy, limit, pending !== 'keep' && this.store.pending > 0);
    this.engage();
    if (gate.enabled) this.lookAndKick();
  }

  /** Tells the stream that it has lost the upcalls: soon, never inside a call. */
  private endLease(): void {
    const { lessee } = this.upcalls;
    this.upcalls.lessee = undefined;
    if (lessee !== undefined) this.host.scheduler.defer(() => lessee.upcallsLost());
  }

  /** Looks for new events, and schedules their delivery. */
  lookAndKick(): void {
    this.dispatcher.armAndLook();
    this.dispatcher.kick();
  }

  setCno(cno: Cno | null): void {
    const { dispatcher, evd } = this;
    const former = dispatcher.cno ?? null;
    if (cno === former) return;
    former?.detach(evd);
    dispatcher.cno = cno ?? undefined;
    cno?.attach(evd);
    if (cno !== null && this.store.pending > 0) dispatcher.alert();
  }

  /** The ring of the completion queue has been replaced. */
  ringReplaced(): void {
    this.arm?.forget();
    this.dispatcher.armAndLook();
  }

  /** A consumer of events has started or stopped: updates the process hold and watches failures. */
  engage(): void {
    const { taker, cno } = this.dispatcher;
    const engaged = taker !== 'none';
    this.hold = changeHold(this.host.processHold, this.hold, HOLD.ENGAGED, engaged);
    this.sources.watch(engaged || cno !== undefined);
    this.dispatcher.takerChanged();
  }

  get hasRef(): boolean {
    return hasRef(this.hold);
  }

  /** Sets whether consumers of its events keep the process alive. */
  keepProcess(wanted: boolean): void {
    this.hold = changeHold(this.host.processHold, this.hold, HOLD.UNREF, !wanted);
  }

  dropWaiter(): Waiting | undefined {
    const { dispatcher } = this;
    const { waiter } = dispatcher;
    dispatcher.waiter = undefined;
    this.engage();
    return waiter;
  }

  // The end

  /** Drops queued events and ends their consumer. The caller ends the completion queue. */
  close(): void {
    const { dispatcher } = this;
    this.open = false;
    dispatcher.close();
    this.upcalls.gate.setPolicy('TEARDOWN', 0, false);
    this.endLease();
    this.store.clear();
    this.dropWaiter()?.freed();
    const { sink } = dispatcher;
    dispatcher.sink = undefined;
    if (sink !== undefined) this.host.scheduler.defer(() => sink.complete());
    dispatcher.iterating = false;
    this.setCno(null);
    this.engage();
  }

  /** Its creation failed: frees the parts that exist. */
  abandon(): void {
    this.close();
    try {
      this.cq?.destroy();
    } catch (error) {
      this.host.logger.error(`the completion queue of evd ${this.id}`, { error: String(error) });
    }
  }

  // Reports of its parts

  /** A new event that the consumer may see. */
  arrived(notice: NotifyLevel): void {
    this.dispatcher.arrived(notice);
  }

  /** A handler has thrown or rejected. */
  upcallFailed(cause: unknown, event: DatEvent | undefined): void {
    // The asynchronous EVD's own handler failed: reporting that to it again would never end.
    const again = event?.type === 'async-error' && event.object === this.evd;
    if (again) unhandled(cause);
    else this.host.reportFailure(evdError(this.evd, 'handler', { cause }));
  }

  /** An upcall that outlived its call has ended. */
  upcallEnded(): void {
    this.dispatcher.kick();
  }

  /** An arm has failed. Called once, until arming succeeds again. */
  unarmable(cause: unknown): void {
    this.report('unarmable', { cause });
  }

  /** The pump has failed, with an error that no consumer call would return. */
  unreadable(cause: unknown): void {
    this.report('unreadable', { cause });
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

  private cqEvent(event: AsyncEventType): void {
    if (event !== AsyncEventType.CQ_ERR) {
      this.report('other', { detail: nameOf(AsyncEventType, event) });
      return;
    }
    for (const listener of [...this.overrunListeners]) listener.onOverrun(this.id);
    this.report('overrun');
  }

  private report(kind: EvdErrorKind, details?: EvdErrorDetails): void {
    this.host.reportAsync(evdError(this.evd, kind, details));
  }

  /**
   * Arms, polls, then counts: counting first would lose completions in between. The notification
   * that may result is absorbed.
   */
  private refuseIfPending(): void {
    this.dispatcher.armAhead();
    this.store.scan();
    const { pending } = this.store;
    if (pending === 0) return;
    throw new DatError('DAT_INVALID_STATE', {
      operation: 'evd.modifyUpcall',
      message: `${pending} events wait`,
      value: pending,
      hint: 'dequeue them and ask again',
    });
  }
}

// The other EVDs of the same endpoints. A consumer waiting here may be waiting for a failed
// completion there.

/** Sources that an unsuccessful poll looks at, out of all of them. */
const SOURCES_A_POLL = 16;

export class ErrorSources {
  /** Number of endpoints that have named each source. */
  private readonly counts = new Map<EvdFeed, number>();
  /** Where the next poll continues. */
  private round: Iterator<EvdFeed, undefined> = this.counts.keys();
  private vigilant = false;

  add(source: EvdFeed): void {
    const count = this.counts.get(source) ?? 0;
    this.counts.set(source, count + 1);
    if (count === 0 && this.vigilant) source.watched(1);
  }

  remove(source: EvdFeed): void {
    const left = (this.counts.get(source) ?? 1) - 1;
    if (left > 0) this.counts.set(source, left);
    else if (this.counts.delete(source) && this.vigilant) source.watched(-1);
  }

  /** Starts or stops watching for failures. */
  watch(vigilant: boolean): void {
    if (vigilant === this.vigilant) return;
    this.vigilant = vigilant;
    for (const source of this.counts.keys()) source.watched(vigilant ? 1 : -1);
  }

  /** Takes in failures after an unsuccessful poll. Each poll looks at the next few sources. */
  look(): void {
    for (let left = Math.min(SOURCES_A_POLL, this.counts.size); left > 0; left--) {
      let { value } = this.round.next();
      if (value === undefined) {
        this.round = this.counts.keys();
        ({ value } = this.round.next());
      }
      value?.scan();
    }
  }
}
