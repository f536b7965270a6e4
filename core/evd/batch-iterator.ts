/** `for await (const batch of evd)`. */
import type { DatEvent } from './event.js';

/** The EVD's side of an iteration. */
export interface IterationHost {
  /** @throws DatError DAT_INVALID_STATE while something else takes the events */
  beginIteration(): void;
  /**
   * Takes everything that waits, at least one event, as soon as there is one; undefined when the
   * EVD has been freed.
   * @throws DatError DAT_INVALID_STATE
   */
  nextBatch(
    take: (batch: readonly DatEvent[] | undefined) => void,
    fail: (error: Error) => void,
  ): void;
  endIteration(): void;
}

/** Takes the EVD over at its first `next`, and gives it back when the loop is left. */
export class BatchIterator implements AsyncIterableIterator<readonly DatEvent[]> {
  private state: 'new' | 'under way' | 'over' = 'new';

  constructor(private readonly host: IterationHost) {}

  [Symbol.asyncIterator](): this {
    return this;
  }

  /** One promise, settled by the EVD itself: each that lies between costs a turn of microtasks. */
  next(): Promise<IteratorResult<readonly DatEvent[], undefined>> {
    return new Promise((resolve, reject) => {
      if (this.state === 'new') {
        this.host.beginIteration();
        this.state = 'under way';
      }
      const end = (): void => {
        this.finish();
        resolve({ done: true, value: undefined });
      };
      const take = (value: readonly DatEvent[] | undefined): void => {
        if (value === undefined) end();
        else resolve({ done: false, value });
      };
      const fail = (error: Error): void => {
        this.finish();
        reject(error);
      };
      if (this.state === 'over') {
        end();
        return;
      }
      try {
        this.host.nextBatch(take, fail);
      } catch (error) {
        this.finish();
        throw error;
      }
    });
  }

  async return(): Promise<IteratorResult<readonly DatEvent[], undefined>> {
    this.finish();
    return { done: true, value: undefined };
  }

  private finish(): void {
    const isUnderWay = this.state === 'under way';
    this.state = 'over';
    if (isUnderWay) this.host.endIteration();
  }
}
