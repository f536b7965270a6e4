/** The pulling side of an EVD, which takes events by asking: dequeue, wait, iterate. */
import { checkInteger, checkOptions, checkParameter } from '../errors/guards.js';
import { Timer } from '../spi/index.js';
import { checkSignal, checkTaker, checkThreshold, checkTimeout } from './common/checks.js';
import { EVD_SUBSTATES, type EvdWaiting } from './common/evd-states.js';
import { freedWhileWaiting, unwaitableError } from './evd-checks.js';
import { EVD_COUNTER } from './evd-counters.js';
import type { WaitOptions, WaitResult } from './evd-host.js';
import type { EvdRecord } from './evd-record.js';
import type { DatEvent } from './events/event.js';
import { EventBatch } from './queue/event-batch.js';
import {
  Waiter,
  type WaiterInit,
  type Waiting,
  interruptedError,
  timeoutError,
} from './queue/waiter.js';

const WAIT_OPTIONS = ['threshold', 'timeoutMs', 'signal'];
/**
 * Every so many waits, a wait that could return at once takes a turn of the event loop. It also
 * does so when handlers have used up their time of this turn. Otherwise a device that completes
 * requests within a post would let nothing else run. The number is for virtual time.
 */
const WAITS_A_TURN = 256;
/** Polls of a spinning consumer for each look at other queues of the same endpoints. */
const POLLS_A_LOOK = 64;
/** Events in one batch of an iteration. */
const MAX_BATCH = 256;

/**
 * When the wanted number of events can be taken: now, in the next turn, or later.
 */
type Outlook = 'ready' | 'next turn' | 'events to come';

export class EvdPull {
  /** True if `wait` and iterations may begin and continue. */
  waiting: EvdWaiting = 'WAITABLE';
  private waits = 0;
  private emptyPolls = 0;

  constructor(private readonly record: EvdRecord) {}

  dequeue(): DatEvent | undefined {
    const { record } = this;
    record.checkOpen('evd.dequeue');
    const { store } = record;
    let event = store.take();
    if (event === undefined && this.spin()) event = store.take();
    if (event === undefined && this.sought()) event = store.take();
    this.countDequeue(event !== undefined);
    return event;
  }

  dequeueInto(batch: EventBatch, max: number): number {
    const operation = 'evd.dequeueInto';
    const { record } = this;
    record.checkOpen(operation);
    const isBatch = batch instanceof EventBatch;
    checkParameter(operation, 'batch', batch, isBatch, 'an EventBatch');
    checkInteger(operation, 'max', max, 0, Number.MAX_SAFE_INTEGER);
    const { store } = record;
    const end = Math.min(max, batch.capacity);
    let count = store.takeBatch(batch, end);
    if (count === 0 && end > 0 && this.spin()) count = store.takeBatch(batch, end);
    if (count === 0 && end > 0 && this.sought()) count = store.takeBatch(batch, end);
    batch.count = count;
    this.countDequeue(count > 0);
    return count;
  }

  wait(options: WaitOptions): Promise<WaitResult<DatEvent>> {
    return new Promise((resolve, reject) => {
      const operation = 'evd.wait';
      const { counts, store, dispatcher } = this.record;
      checkOptions(operation, options, WAIT_OPTIONS);
      const { threshold = 1, timeoutMs, signal } = options;
      this.record.begin(operation, { timeoutMs, threshold });
      counts.bump(EVD_COUNTER.WAIT, 1);
      checkSignal(operation, signal);
      checkTimeout(operation, timeoutMs);
      checkThreshold(threshold, store.qlen, dispatcher.configuration);
      this.checkWaitable(operation);
      checkTaker(operation, dispatcher.taker, 'waiter');
      if (signal?.aborted === true) throw interruptedError(operation, signal);
      const satisfy = (): boolean => this.settleWait(resolve);
      const onFree = (): void => reject(freedWhileWaiting());
      this.suspend({ threshold, satisfy, reject, onFree, signal, timeoutMs });
    });
  }

  setUnwaitable(): void {
    this.waiting = EVD_SUBSTATES[this.waiting].setUnwaitable;
    this.record.dropWaiter()?.reject(unwaitableError('evd.wait'));
  }

  clearUnwaitable(): void {
    this.waiting = EVD_SUBSTATES[this.waiting].clearUnwaitable;
  }

  // For iterations

  /** @throws DatError DAT_INVALID_STATE while something else takes the events */
  beginIteration(): void {
    const { record } = this;
    record.checkOpen('evd.iterate');
    this.checkWaitable('evd.iterate');
    checkTaker('evd.iterate', record.dispatcher.taker, 'iterator');
    record.dispatcher.iterating = true;
    record.engage();
  }

  endIteration(): void {
    this.record.dispatcher.iterating = false;
    // A pending `next` must not take an event that nothing would read.
    this.record.dropWaiter()?.freed();
  }

  /**
   * Takes all queued events, at least one. If there is none, 'later': `iteration` is served when
   * there is. 'never' when the EVD has been freed.
   * @throws DatError DAT_INVALID_STATE
   */
  nextBatch(iteration: Waiting): DatEvent[] | 'later' | 'never' {
    const { open, dispatcher } = this.record;
    if (!open) return 'never';
    this.checkWaitable('evd.iterate');
    if (dispatcher.waiter !== undefined) checkTaker('evd.iterate', 'waiter', 'iterator');
    const outlook = this.outlook(1, true);
    const batch = outlook === 'ready' ? this.takeBatch() : undefined;
    if (batch !== undefined) return batch;
    this.block(iteration, outlook);
    return 'later';
  }

  /** The batch for an iteration that is served; undefined when it is gone. */
  takeBatch(): DatEvent[] | undefined {
    const { store } = this.record;
    const first = store.take();
    if (first === undefined) return undefined;
    const batch = [first];
    while (batch.length < MAX_BATCH) {
      const event = store.take();
      if (event === undefined) break;
      batch.push(event);
    }
    return batch;
  }

  /** Puts events in front of all queued ones. */
  putBack(events: readonly DatEvent[]): void {
    if (this.record.open) this.record.store.putBack(events);
  }

  /** True if none of those events has been taken meanwhile. */
  hasStill(events: readonly DatEvent[]): boolean {
    return !this.record.open || this.record.store.hasStill(events);
  }

  /** Takes those events again, if it still has them. */
  takeAgain(events: readonly DatEvent[]): void {
    this.record.store.takeAgain(events);
  }

  /** Waits as `init` says, or settles immediately. */
  private suspend(init: WaiterInit): void {
    const { record } = this;
    const { store, dispatcher, host } = record;
    const { timeoutMs, threshold, signal } = init;
    const outlook = this.outlook(threshold, timeoutMs !== 0);
    if (outlook === 'ready' && init.satisfy()) return;
    if (timeoutMs === 0) throw timeoutError(0, store.pending, threshold);
    const onTimeout = (): void => {
      store.scan();
      dispatcher.waiter = undefined;
      const { pending } = store;
      if (pending < threshold || !waiter.satisfy()) {
        waiter.reject(timeoutError(timeoutMs ?? Infinity, pending, threshold));
      }
      record.engage();
    };
    const onAbort = (): void => {
      if (signal !== undefined) record.dropWaiter()?.reject(interruptedError('evd.wait', signal));
    };
    const waiter = new Waiter(init, host.timers, host.clock, onTimeout, onAbort);
    this.block(waiter, outlook);
  }

  private outlook(threshold: number, mayBlock: boolean): Outlook {
    const { store, sources } = this.record;
    store.scan();
    this.waits += 1;
    if (store.pending < threshold) sources.look();
    if (store.pending < threshold) return 'events to come';
    if (!mayBlock) return 'ready';
    if (this.waits % WAITS_A_TURN === 0) return 'next turn';
    return this.record.host.scheduler.mayStart() ? 'ready' : 'next turn';
  }

  private block(waiter: Waiting, outlook: Outlook): void {
    const { counts, dispatcher } = this.record;
    counts.bump(EVD_COUNTER.WAIT_BLOCKED, 1);
    dispatcher.waiter = waiter;
    this.record.engage();
    if (outlook === 'next turn') this.lookAgain(waiter);
    else dispatcher.armAndLook();
  }

  /** In the next turn: takes queued events, or continues, unless the wait is over by then. */
  private lookAgain(waiter: Waiting): void {
    const { host, store, dispatcher } = this.record;
    const look = (): void => {
      if (dispatcher.waiter !== waiter) return;
      if (store.pending >= waiter.threshold) {
        dispatcher.waiter = undefined;
        if (waiter.satisfy()) return;
        dispatcher.waiter = waiter;
      }
      dispatcher.armAndLook();
    };
    host.timers.start(new Timer(look), host.clock.now());
  }

  /** Takes the oldest event for a waiter, which then ends. */
  private settleWait(resolve: (result: WaitResult<DatEvent>) => void): boolean {
    const { store } = this.record;
    const event = store.take();
    if (event === undefined) return false;
    this.record.engage();
    resolve({ event, nmore: store.pending });
    return true;
  }

  private countDequeue(found: boolean): void {
    const { counts } = this.record;
    counts.bump(EVD_COUNTER.DEQUEUE, 1);
    counts.bump(found ? EVD_COUNTER.FOUND : EVD_COUNTER.NOT_FOUND, 1);
  }

  /** Drives the device if that is how this EVD is polled. */
  private spin(): boolean {
    const { polling, cq, host } = this.record;
    if (polling !== 'spin' || cq === undefined) return false;
    return host.device.progress();
  }

  /**
   * After an unsuccessful poll: the consumer may be waiting for a failure on another EVD. A
   * spinning consumer looks there now and then.
   */
  private sought(): boolean {
    const { polling, sources, store } = this.record;
    if (polling === 'spin' && ++this.emptyPolls % POLLS_A_LOOK !== 0) return false;
    sources.look();
    return store.pending > 0;
  }

  private checkWaitable(operation: string): void {
    if (this.waiting === 'UNWAITABLE') throw unwaitableError(operation);
  }
}
