/** `for await (const batch of evd)`. */
import type { DatEvent } from './event.js';

/** The EVD's side of an iteration. */
export interface IterationHost {
  /** @throws DatError DAT_INVALID_STATE while something else takes the events */
  beginIteration(): void;
  /** Everything that waits, at least one event; undefined when the EVD has been freed. */
  nextBatch(): Promise<readonly DatEvent[] | undefined>;
  endIteration(): void;
}

/** Takes the EVD over at its first `next`, and gives it back when the loop is left. */
export class BatchIterator implements AsyncIterableIterator<readonly DatEvent[]> {
  private state: 'new' | 'under way' | 'over' = 'new';

  constructor(private readonly host: IterationHost) {}

  [Symbol.asyncIterator](): this {
    return this;
  }

  async next(): Promise<IteratorResult<readonly DatEvent[], undefined>> {
    if (this.state === 'new') {
      this.host.beginIteration();
      this.state = 'under way';
    }
    if (this.state === 'over') return { done: true, value: undefined };
    try {
      const value = await this.host.nextBatch();
      if (value !== undefined) return { done: false, value };
    } catch (error) {
      this.finish();
      throw error;
    }
    this.finish();
    return { done: true, value: undefined };
  }

  async return(): Promise<IteratorResult<readonly DatEvent[], undefined>> {
    this.finish();
    return { done: true, value: undefined };
  }

  private finish(): void {
    if (this.state === 'under way') this.host.endIteration();
    this.state = 'over';
  }
}
