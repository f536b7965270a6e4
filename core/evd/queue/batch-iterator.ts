/** `for await (const batch of evd)`. */
import type { DatError } from '../../errors/index.js';
import type { DatEvent } from '../events/event.js';
import { type BatchSource, OfferedBatch } from './tracked-batch.js';
import type { Waiting } from './waiter.js';

type Batch = readonly DatEvent[];
type Result = IteratorResult<Batch, undefined>;

/** An iteration over the batches of an EVD. */
export interface Batches extends AsyncIterableIterator<Batch, undefined> {
  /** Gives the EVD back. */
  return(): Promise<IteratorResult<Batch, undefined>>;
}

/** The EVD's side of an iteration. */
export interface IterationHost extends BatchSource {
  /** @throws DatError DAT_INVALID_STATE while something else takes the events */
  beginIteration(): void;
  /**
   * Takes everything that waits, at least one event. When there is none, `iteration` is served as
   * soon as there is: 'later'. 'never' when the EVD has been freed.
   * @throws DatError DAT_INVALID_STATE
   */
  nextBatch(iteration: Waiting): DatEvent[] | 'later' | 'never';
  /** What waits for an iteration that is served; undefined when it is gone. */
  takeBatch(): DatEvent[] | undefined;
  endIteration(): void;
}

/**
 * Takes the EVD over at its first `next`, and gives it back when the loop is left, with what the
 * loop has not read of its last batch. It is itself what waits on the EVD: a closure and an object
 * for each of its waits would cost half of one.
 */
export class BatchIterator implements Batches, Waiting {
  readonly threshold = 1;
  private state: 'new' | 'under way' | 'over' = 'new';
  /** The last batch. */
  private offered: OfferedBatch | undefined = undefined;
  /** Of the `next` that waits. */
  private resolve: ((result: Result) => void) | undefined = undefined;
  private fail: ((error: Error) => void) | undefined = undefined;
  private readonly keep = (
    resolve: (result: Result) => void,
    reject: (error: Error) => void,
  ): void => {
    this.resolve = resolve;
    this.fail = reject;
  };

  constructor(private readonly host: IterationHost) {}

  [Symbol.asyncIterator](): this {
    return this;
  }

  /** One promise, settled by the EVD itself: each that lies between costs a turn of microtasks. */
  next(): Promise<Result> {
    this.offered?.keep();
    try {
      if (this.state === 'new') {
        this.host.beginIteration();
        this.state = 'under way';
      }
    } catch (error) {
      return failed(error);
    }
    if (this.state === 'over') return Promise.resolve(END);
    try {
      const batch = this.host.nextBatch(this);
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
    const value = this.host.takeBatch();
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
    this.offered = new OfferedBatch(events, this.host);
    return { done: false, value: this.offered.batch };
  }

  private finish(): void {
    const isUnderWay = this.state === 'under way';
    this.state = 'over';
    this.offered = undefined;
    if (isUnderWay) this.host.endIteration();
  }
}

const END: Result = Object.freeze({ done: true, value: undefined });

function failed(error: unknown): Promise<never> {
  return Promise.reject(error instanceof Error ? error : new Error(String(error)));
}
