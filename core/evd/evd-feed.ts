/**
 * The feeding side of an EVD, for endpoints, service points and the interface adapter. Objects that
 * number in thousands remember what they have added; for others a call returns its undo function.
 */
import { DatError, spiCall } from '../errors/index.js';
import type { CompletionQueue } from '../spi/index.js';
import { EVD_CONFIGURATIONS, type EvdConfiguration } from './common/evd-states.js';
import { EVD_COUNTER } from './evd-counters.js';
import { evdError } from './evd-errors.js';
import type { EvdRecord, OverrunListener } from './evd-record.js';
import { postedEvent } from './events/event-classes.js';
import type { PostedEvent } from './events/event.js';
import type { EventPlace } from './queue/event-store.js';

export class EvdFeed {
  /** Endpoints, service points and adapters that feed it. */
  users = 0;
  /** Entries of the completion queue that the consumer does not count. */
  reserved = 0;
  private configuring = 0;
  /** Users whose events are no completions. */
  private plainUsers = 0;
  private overflowing = false;

  constructor(private readonly record: EvdRecord) {}

  /** Queue pairs are created on it. @throws Error when no completions feed the EVD */
  get cq(): CompletionQueue {
    const { cq, id } = this.record;
    if (cq === undefined) throw new Error(`event dispatcher ${id} has no completion queue`);
    return cq;
  }

  /** True if something feeds it. */
  get isInUse(): boolean {
    return this.users > 0;
  }

  /** True if something takes its events, or has asked for them: a posted event will be seen. */
  get isHeeded(): boolean {
    const { open, counts, dispatcher } = this.record;
    if (!open) return false;
    const { taker, cno } = dispatcher;
    return taker !== 'none' || cno !== undefined || counts.get(EVD_COUNTER.DEQUEUE) > 0;
  }

  /** True if the next posted event would be lost. */
  get isFull(): boolean {
    return this.record.store.full;
  }

  /** Scanned completions of a context that are not dequeued yet. */
  left(context: number): number {
    return this.record.open ? this.record.store.left(context) : 0;
  }

  /**
   * Queues an event at the place that EventPlace describes. Returns false when there was no room:
   * the event is lost, and EVD_OVERFLOW with this EVD is on the asynchronous EVD.
   */
  post(event: PostedEvent, place: EventPlace = 'behind'): boolean {
    const { open, counts, store } = this.record;
    if (!open) return false;
    counts.count('posted');
    if (event.type === 'connection') counts.count('connectionNotify');
    const hasRoom = store.post(postedEvent(event), place);
    if (!hasRoom) this.overflowed(event);
    this.overflowing = !hasRoom;
    return hasRoom;
  }

  /**
   * Looks at the completion queue and shows new completions to endpoints (`onCompletion`). Returns
   * how many new events the consumer may see.
   */
  scan(): number {
    if (!this.record.open) return 0;
    try {
      return this.record.store.scan();
    } catch (cause) {
      this.record.unreadable(cause);
      return 0;
    }
  }

  /** Drops and counts completions of a context that were not taken; before `owners.free`. */
  purge(context: number, srqn?: number): void {
    if (this.record.open) this.record.store.purge(context, srqn);
  }

  /** `addUser`; returns `removeUser`, which does nothing when called again. */
  attach(configuration?: EvdConfiguration): () => void {
    this.addUser(configuration);
    return once(() => this.removeUser(configuration));
  }

  /**
   * Counts a user: while there is one the EVD cannot be freed.
   * @param configuration how the completions of this user notify: NOTIFY if some may be
   * UNSIGNALLED, SOLICITED, or THRESHOLD; none for a stream of other events. All users must agree,
   * and streams of other events combine with THRESHOLD only
   * @throws DatError DAT_INVALID_STATE (DAT_INVALID_STATE_EVD_CONFIG_*) when they do not
   */
  addUser(configuration?: EvdConfiguration): void {
    this.checkAgreement(configuration);
    this.countUser(configuration, 1);
  }

  removeUser(configuration?: EvdConfiguration): void {
    this.countUser(configuration, -1);
  }

  /**
   * For an EVD of an endpoint, with `source` a DTO EVD of the same endpoint. While a waiter,
   * subscription or upcall takes its events, `source` is armed for failed completions even if
   * nothing wants its events. So the endpoint notices a failure and breaks without a dequeue. A
   * poll that finds nothing looks there, too.
   */
  addErrorSource(source: EvdFeed): void {
    if (source !== this) this.record.sources.add(source);
  }

  removeErrorSource(source: EvdFeed): void {
    if (source !== this) this.record.sources.remove(source);
  }

  /**
   * Takes completions in as they come, even if nothing wants the events: an endpoint that ends
   * waits for its queues to run empty, and the consumer may never dequeue.
   * @returns a function that stops it; calling it again does nothing
   */
  hold(): () => void {
    const { open, dispatcher } = this.record;
    dispatcher.holders++;
    if (open) dispatcher.armAndLook();
    return once(() => dispatcher.holders--);
  }

  /** `addReserve`; returns `removeReserve`, which does nothing when called again. */
  reserve(entries: number): () => void {
    this.addReserve(entries);
    return once(() => this.removeReserve(entries));
  }

  /** Makes room in the completion queue for completions that the consumer does not count. */
  addReserve(entries: number): void {
    const { cq, store } = this.record;
    const needed = store.qlen + this.reserved + entries;
    if (cq !== undefined && cq.ring.entries < needed) {
      spiCall({ operation: 'evd.reserve', value: needed }, () => store.resizeCq(needed));
      this.record.ringReplaced();
    }
    // Last, because a call that fails must not have reserved anything.
    this.reserved += entries;
  }

  removeReserve(entries: number): void {
    this.reserved -= entries;
  }

  /** `addOverrunListener`; returns `removeOverrunListener`. */
  onOverrun(listener: OverrunListener): () => void {
    this.addOverrunListener(listener);
    return () => this.removeOverrunListener(listener);
  }

  /** The completion queue has overrun: completions are lost, and endpoints that feed it break. */
  addOverrunListener(listener: OverrunListener): void {
    this.record.overrunListeners.add(listener);
  }

  removeOverrunListener(listener: OverrunListener): void {
    this.record.overrunListeners.delete(listener);
  }

  /**
   * Takes failed completions in as they come, even if nothing wants the events.
   * @returns a function that stops it; calling it again does nothing
   */
  watchFailures(): () => void {
    this.watched(1);
    return once(() => this.watched(-1));
  }

  watched(change: 1 | -1): void {
    const { open, dispatcher } = this.record;
    dispatcher.watchers += change;
    if (change > 0 && open) dispatcher.armAndLook();
  }

  /** @throws DatError DAT_INVALID_STATE_EVD_IN_USE while something feeds the EVD */
  checkUnused(operation: string): void {
    if (this.users === 0) return;
    throw new DatError('DAT_INVALID_STATE', {
      subtype: 'DAT_INVALID_STATE_EVD_IN_USE',
      operation,
      message: `${this.users} endpoints, service points or adapters feed this EVD`,
      value: this.users,
      hint: 'free them first',
    });
  }

  private checkAgreement(wanted: EvdConfiguration = 'THRESHOLD'): void {
    const present = this.record.dispatcher.configuration;
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

  private countUser(configuration: EvdConfiguration | undefined, change: 1 | -1): void {
    this.users += change;
    if (configuration === undefined) {
      this.plainUsers += change;
      return;
    }
    const { open, dispatcher } = this.record;
    this.configuring += change;
    dispatcher.configuration = this.configuring > 0 ? configuration : 'THRESHOLD';
    if (open) dispatcher.armAndLook();
  }

  /**
   * Reports a run of lost events once. The asynchronous EVD itself reports when it has room again.
   */
  private overflowed(event: PostedEvent): void {
    const { counts, store, host, evd } = this.record;
    counts.count('lost');
    const overflow = evdError(evd, 'overflow', { detail: store.qlen });
    host.logger.warn(overflow.message, { lost: event.type });
    if (event.type === 'async-error') store.postLate(postedEvent(overflow));
    else if (!this.overflowing) host.reportAsync(overflow);
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
