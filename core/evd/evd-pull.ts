/** Taking events off an EVD by asking: dequeue, wait, iterate. */
import { type PollingMode, Timer } from '../spi/index.js';

import { traceCall } from './common/api-trace.js';
import { BatchIterator } from './queue/batch-iterator.js';
import { type DatEvent } from './events/event.js';
import { EventBatch } from './queue/event-batch.js';

import { checkSignal, checkTaker, checkThreshold, checkTimeout } from './common/checks.js';
import { checkInteger, checkOptions, checkParameter, checkReset } from '../errors/guards.js';
import { checkPolling, freedWhileWaiting, invalidHandle, unwaitableError } from './evd-checks.js';
import { EVD_COUNTER, type EvdCounterValues } from './evd-counters.js';
import { EvdFeed } from './evd-feed.js';
import type { WaitOptions, WaitResult } from './evd-host.js';

import { EVD_SUBSTATES, type EvdWaiting } from './common/evd-states.js';
import {
  Waiter,
  type WaiterInit,
  type Waiting,
  interruptedError,
  timeoutError,
} from './queue/waiter.js';

/** No limit but the batch's own. */
const MAX_EVENTS = 0x7fffffff;
const WAIT_OPTIONS = ['threshold', 'timeoutMs', 'signal'];
/**
 * Every so many waits, one that need not wait does so for a turn of the event loop: a device whose
 * completions are there when a post returns would let nothing else run.
 */
const WAITS_A_TURN = 256;
/** Polls of a consumer that spins, of which one looks at other queues of the same endpoints. */
const POLLS_A_LOOK = 64;
/** Events in one batch of an iteration. */
const MAX_BATCH = 256;

export abstract class EvdPull extends EvdFeed implements AsyncIterable<readonly DatEvent[]> {
  protected waiting: EvdWaiting = 'WAITABLE';
  private polling: PollingMode = 'event';
  private waits = 0;
  private emptyPolls = 0;

  /**
   * Takes the oldest event; undefined is DAT_QUEUE_EMPTY. Always legal. In polling mode 'spin' an
   * empty queue drives the device once.
   * @throws DatError DAT_INVALID_HANDLE when freed
   */
  dequeue(): DatEvent | undefined {
    this.checkOpen('evd.dequeue');
    let event = this.store.take();
    if (event === undefined && this.spin()) event = this.store.take();
    if (event === undefined && this.sought()) event = this.store.take();
    this.countDequeue(event !== undefined);
    return event;
  }

  /**
   * Takes up to `max` events (default: as many as the batch holds) into a reused batch, without
   * making objects of DTO completions.
   * @returns how many, also in `batch.count`
   * @throws DatError DAT_INVALID_HANDLE when freed
   */
  dequeueInto(batch: EventBatch, max: number = MAX_EVENTS): number {
    const operation = 'evd.dequeueInto';
    this.checkOpen(operation);
    const isBatch = batch instanceof EventBatch;
    checkParameter(operation, 1, 'batch', batch, isBatch, 'an EventBatch');
    checkInteger(operation, 2, 'max', max, 0, Number.MAX_SAFE_INTEGER);
    const end = Math.min(max, batch.capacity);
    let count = this.store.takeBatch(batch, end);
    if (count === 0 && end > 0 && this.spin()) count = this.store.takeBatch(batch, end);
    if (count === 0 && end > 0 && this.sought()) count = this.store.takeBatch(batch, end);
    batch.count = count;
    this.countDequeue(count > 0);
    return count;
  }

  /** @internal the next event that is posted would be lost */
  get isFull(): boolean {
    return this.store.full;
  }

  /** @internal completions of a context that are still to be dequeued, of those scanned */
  left(context: number): number {
    return this.open ? this.store.left(context) : 0;
  }

  private countDequeue(found: boolean): void {
    this.counts.bump(EVD_COUNTER.DEQUEUE, 1);
    this.counts.bump(found ? EVD_COUNTER.FOUND : EVD_COUNTER.NOT_FOUND, 1);
  }

  /**
   * What has been dequeued, waited for and notified (dat_ib_query_counters on an EVD).
   * @param options `reset`: the counters begin again at 0; what was counted is returned
   * @throws DatError DAT_INVALID_HANDLE when freed; DAT_INVALID_PARAMETER
   */
  counters(options: { readonly reset?: boolean } = {}): EvdCounterValues {
    const operation = 'evd.counters';
    this.trace(operation, { reset: options?.reset });
    this.checkOpen(operation);
    return this.counts.read(checkReset(operation, options));
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
    return new Promise((resolve, reject) => {
      checkOptions('evd.wait', 2, options, WAIT_OPTIONS);
      const { threshold = 1, timeoutMs, signal } = options;
      this.trace('evd.wait', { timeoutMs, threshold });
      this.checkOpen('evd.wait');
      this.counts.bump(EVD_COUNTER.WAIT, 1);
      checkSignal('evd.wait', signal);
      checkTimeout('evd.wait', timeoutMs);
      checkThreshold(threshold, this.store.qlen, this.dispatcher.configuration);
      this.checkWaitable('evd.wait');
      checkTaker('evd.wait', this.dispatcher.taker, 'waiter');
      if (signal?.aborted === true) throw interruptedError('evd.wait', signal);
      const satisfy = (): boolean => this.settleWait(resolve);
      const onFree = (): void => reject(freedWhileWaiting());
      this.suspend({ threshold, satisfy, reject, onFree, signal, timeoutMs });
    });
  }

  /**
   * `for await (const batch of evd)`: everything that waits, in order, at least one event. Ends
   * when the EVD is freed. What a loop that is left (`break`, `return`, an error) has not read of
   * its last batch stays in the EVD, in order.
   */
  [Symbol.asyncIterator](): BatchIterator {
    return new BatchIterator({
      beginIteration: () => this.iterate(true),
      nextBatch: (iteration) => this.nextBatch(iteration),
      takeBatch: () => this.takeBatch(),
      endIteration: () => this.iterate(false),
      putBack: (events) => {
        if (this.open) this.store.putBack(events);
      },
      hasStill: (events) => !this.open || this.store.hasStill(events),
      takeAgain: (events) => this.store.takeAgain(events),
    });
  }

  /** The waiter, and every later one, gets DAT_INVALID_STATE_EVD_UNWAITABLE. */
  setUnwaitable(): void {
    this.trace('evd.setUnwaitable', {});
    this.checkOpen('evd.setUnwaitable');
    this.waiting = EVD_SUBSTATES[this.waiting].setUnwaitable;
    this.dropWaiter()?.reject(unwaitableError('evd.wait'));
  }

  clearUnwaitable(): void {
    this.trace('evd.clearUnwaitable', {});
    this.checkOpen('evd.clearUnwaitable');
    this.waiting = EVD_SUBSTATES[this.waiting].clearUnwaitable;
  }

  /** How completions reach core: by wake-ups, by polling for a while, or only by dequeueing. */
  setPolling(mode: PollingMode): void {
    this.trace('evd.setPolling', { mode });
    this.checkOpen('evd.setPolling');
    checkPolling('evd.setPolling', mode);
    this.applyPolling(mode);
  }

  protected applyPolling(mode: PollingMode): void {
    this.polling = mode;
    this.cq?.setPolling(mode);
  }

  /** Waits for what `init` says, or settles at once. */
  private suspend(init: WaiterInit): void {
    const { timeoutMs, threshold, signal } = init;
    const outlook = this.outlook(threshold, timeoutMs !== 0);
    if (outlook === 'ready' && init.satisfy()) return;
    if (timeoutMs === 0) throw timeoutError(0, this.store.pending, threshold);
    const onTimeout = (): void => {
      this.store.scan();
      this.dispatcher.waiter = undefined;
      const { pending } = this.store;
      if (pending < threshold || !waiter.satisfy()) {
        waiter.reject(timeoutError(timeoutMs ?? Infinity, pending, threshold));
      }
      this.engage();
    };
    const onAbort = (): void => {
      if (signal !== undefined) this.dropWaiter()?.reject(interruptedError('evd.wait', signal));
    };
    const waiter = new Waiter(init, this.host.timers, this.host.clock, onTimeout, onAbort);
    this.block(waiter, outlook);
  }

  /** Whether as many events wait now, and may be taken in this turn of the event loop. */
  private outlook(threshold: number, mayBlock: boolean): 'ready' | 'next turn' | 'events to come' {
    this.store.scan();
    this.waits += 1;
    if (this.store.pending < threshold) this.lookAround();
    if (this.store.pending < threshold) return 'events to come';
    return mayBlock && this.waits % WAITS_A_TURN === 0 ? 'next turn' : 'ready';
  }

  private block(waiter: Waiting, outlook: 'ready' | 'next turn' | 'events to come'): void {
    this.counts.bump(EVD_COUNTER.WAIT_BLOCKED, 1);
    this.dispatcher.waiter = waiter;
    this.engage();
    if (outlook === 'next turn') this.lookAgain(waiter);
    else this.dispatcher.armAndLook();
  }

  /** In the next turn; unless the wait is over by then, it takes what waits, or goes on. */
  private lookAgain(waiter: Waiting): void {
    const { host, dispatcher } = this;
    const look = (): void => {
      if (dispatcher.waiter !== waiter) return;
      if (this.store.pending >= waiter.threshold) {
        dispatcher.waiter = undefined;
        if (waiter.satisfy()) return;
        dispatcher.waiter = waiter;
      }
      dispatcher.armAndLook();
    };
    host.timers.start(new Timer(look), host.clock.now());
  }

  /** Takes the oldest event for a waiter, which is over. */
  private settleWait(resolve: (result: WaitResult<DatEvent>) => void): boolean {
    const event = this.store.take();
    if (event === undefined) return false;
    this.engage();
    resolve({ event, nmore: this.store.pending });
    return true;
  }

  private iterate(begin: boolean): void {
    if (begin) {
      this.checkOpen('evd.iterate');
      this.checkWaitable('evd.iterate');
      checkTaker('evd.iterate', this.dispatcher.taker, 'iterator');
    }
    this.dispatcher.iterating = begin;
    // A `next` that still waits must not take an event that nothing would look at.
    if (begin) this.engage();
    else this.dropWaiter()?.freed();
  }

  private nextBatch(iteration: Waiting): DatEvent[] | 'later' | 'never' {
    if (!this.open) return 'never';
    this.checkWaitable('evd.iterate');
    if (this.dispatcher.waiter !== undefined) checkTaker('evd.iterate', 'waiter', 'iterator');
    const outlook = this.outlook(1, true);
    const batch = outlook === 'ready' ? this.takeBatch() : undefined;
    if (batch !== undefined) return batch;
    this.block(iteration, outlook);
    return 'later';
  }

  private takeBatch(): DatEvent[] | undefined {
    const first = this.store.take();
    if (first === undefined) return undefined;
    const batch = [first];
    while (batch.length < MAX_BATCH) {
      const event = this.store.take();
      if (event === undefined) break;
      batch.push(event);
    }
    return batch;
  }

  protected dropWaiter(): Waiting | undefined {
    const waiter = this.dispatcher.waiter;
    this.dispatcher.waiter = undefined;
    this.engage();
    return waiter;
  }

  /** Drives the device if that is how this EVD is polled. */
  private spin(): boolean {
    if (this.polling !== 'spin' || this.cq === undefined) return false;
    return this.host.device.progress();
  }

  /**
   * A poll has found nothing: a failure elsewhere may be what the consumer waits for. One that
   * spins looks there now and then.
   */
  private sought(): boolean {
    if (this.polling === 'spin' && ++this.emptyPolls % POLLS_A_LOOK !== 0) return false;
    this.lookAround();
    return this.store.pending > 0;
  }

  protected checkOpen(operation: string): void {
    if (!this.open) throw invalidHandle(operation);
  }

  private checkWaitable(operation: string): void {
    if (this.waiting === 'UNWAITABLE') throw unwaitableError(operation);
  }

  protected trace(call: string, parameters: Readonly<Record<string, unknown>>): void {
    if (!this.host.logger.isDebugEnabled()) return;
    traceCall(this.host.logger, call, { evd: this.id, ...parameters });
  }
}
