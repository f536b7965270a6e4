/** `for await (const batch of evd)`. */
import type { DatError } from '../../errors/index.js';
import type { DatEvent } from '../events/event.js';
import type { EvdPull } from '../evd-pull.js';
import type { Waiting } from './waiter.js';

// The array an async iteration yields. Tracks how much was read, so an abandoned loop returns the
// rest to the EVD. It may be read by index (as `mergeAll` does), by iterator, or by array methods.

class OfferedBatch implements ProxyHandler<DatEvent[]> {
  /** The array that the loop gets. */
  readonly batch: readonly DatEvent[];
  /** Number of events read: those belong to the reader. */
  private read = 0;
  private offer: 'open' | 'kept' | 'left' = 'open';
  private returned: readonly DatEvent[] | undefined = undefined;

  constructor(
    private readonly events: DatEvent[],
    private readonly pull: EvdPull,
  ) {
    this.batch = new Proxy(events, this);
  }

  /** The loop continues: it owns the whole batch. */
  keep(): void {
    if (this.offer === 'open') this.offer = 'kept';
  }

  /** The loop is left: puts back the events that it has not read. */
  leave(): void {
    if (this.offer !== 'open') return;
    const { events, read } = this;
    const rest = events.slice(read);
    if (rest.length > 0) this.pull.putBack(rest);
    this.offer = read > 0 ? 'kept' : 'left';
    // A loop that is left with the batch itself (`return batch`) may still read it.
    if (read > 0) events.length -= rest.length;
    else this.returned = rest;
  }

  get(events: DatEvent[], key: string | symbol): unknown {
    // The iterator of arrays, without a proxy call at each step.
    if (key === Symbol.iterator) return () => new BatchReader(this);
    if (this.offer !== 'kept' && typeof key === 'string') {
      this.lookBack();
      this.reach(Number(key));
    }
    return Reflect.get(events, key);
  }

  /** Reads the event at an index; undefined behind the last. */
  at(index: number): DatEvent | undefined {
    if (this.offer !== 'kept') {
      this.lookBack();
      this.reach(index);
    }
    return this.events[index];
  }

  /** After the loop: empties the batch if the EVD no longer has the rest. */
  private lookBack(): void {
    if (this.returned === undefined || this.pull.hasStill(this.returned)) return;
    this.settle();
    this.events.length = 0;
  }

  /** Marks the event at an index as read; an index out of range marks nothing. */
  private reach(index: number): void {
    if (!Number.isInteger(index) || index < 0 || index >= this.events.length) return;
    if (this.returned === undefined) {
      if (index >= this.read) this.read = index + 1;
      return;
    }
    this.pull.takeAgain(this.returned);
    this.settle();
  }

  private settle(): void {
    this.offer = 'kept';
    this.returned = undefined;
  }
}

class BatchReader implements IterableIterator<DatEvent> {
  private index = 0;

  constructor(private readonly offered: OfferedBatch) {}

  [Symbol.iterator](): this {
    return this;
  }

  next(): IteratorResult<DatEvent> {
    const value = this.offered.at(this.index);
    if (value === undefined) return { done: true, value };
    this.index += 1;
    return { done: false, value };
  }
}

type Batch = readonly DatEvent[];
type Result = IteratorResult<Batch, undefined>;

/** An iteration over the batches of an EVD. */
export interface Batches extends AsyncIterableIterator<Batch, undefined> {
  /** Gives the EVD back. */
  return(): Promise<IteratorResult<Batch, undefined>>;
}

/**
 * Takes the EVD over at its first `next`. Gives it back when the loop is left, with the unread rest
 * of its last batch. The iterator itself waits on the EVD: a closure and an object for each wait
 * would cost half as much as the wait.
 */
export class BatchIterator implements Batches, Waiting {
  readonly threshold = 1;
  private state: 'new' | 'under way' | 'over' = 'new';
  /** The last batch. */
  private offered: OfferedBatch | undefined = undefined;
  /** Resolves the pending `next`. */
  private resolve: ((result: Result) => void) | undefined = undefined;
  private fail: ((error: Error) => void) | undefined = undefined;
  private readonly keep = (
    resolve: (result: Result) => void,
    reject: (error: Error) => void,
  ): void => {
    this.resolve = resolve;
    this.fail = reject;
  };

  constructor(private readonly pull: EvdPull) {}

  [Symbol.asyncIterator](): this {
    return this;
  }

  /** One promise, settled by the EVD itself: each promise in between would cost a microtask. */
  next(): Promise<Result> {
    this.offered?.keep();
    try {
      if (this.state === 'new') {
        this.pull.beginIteration();
        this.state = 'under way';
      }
    } catch (error) {
      return failed(error);
    }
    if (this.state === 'over') return Promise.resolve(END);
    try {
      const batch = this.pull.nextBatch(this);
      if (batch === 'later') return new Promise(this.keep);
      if (batch !== 'never') return Promise.resolve(this.offer(batch));
      this.finish();
      return Promise.resolve(END);
    } catch (error) {
      this.finish();
      return failed(error);
    }
  }

  async return(): Promise<Result> {
    if (this.state === 'under way') this.offered?.leave();
    this.finish();
    return END;
  }

  satisfy(): boolean {
    const value = this.pull.takeBatch();
    if (value === undefined) return false;
    this.resolve?.(this.offer(value));
    return true;
  }

  reject(error: DatError): void {
    const { fail } = this;
    this.finish();
    fail?.(error);
  }

  freed(): void {
    const { resolve } = this;
    this.finish();
    resolve?.(END);
  }

  private offer(events: DatEvent[]): Result {
    this.offered = new OfferedBatch(events, this.pull);
    return { done: false, value: this.offered.batch };
  }

  private finish(): void {
    const isUnderWay = this.state === 'under way';
    this.state = 'over';
    this.offered = undefined;
    if (isUnderWay) this.pull.endIteration();
  }
}

const END: Result = Object.freeze({ done: true, value: undefined });

function failed(error: unknown): Promise<never> {
  return Promise.reject(error instanceof Error ? error : new Error(String(error)));
}
