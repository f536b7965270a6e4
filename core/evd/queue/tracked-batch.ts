/**
 * The array that an iteration hands out. It notes how far it has been read, so that what a loop
 * that is left has not looked at can go back to the EVD, whichever way it was read: by index (as
 * `mergeAll` does), by iterator, or by the methods of arrays.
 */
import type { DatEvent } from '../events/event.js';

/** Where the rest of a batch goes back to. */
export interface BatchSource {
  /** Puts events in front of all that wait. */
  putBack(events: readonly DatEvent[]): void;
  /** Nothing has taken one of those events meanwhile. */
  hasStill(events: readonly DatEvent[]): boolean;
  /** Takes those events again, which it still has. */
  takeAgain(events: readonly DatEvent[]): void;
}

export class OfferedBatch implements ProxyHandler<DatEvent[]> {
  /** What the loop gets. */
  readonly batch: readonly DatEvent[];
  /** Events that have been read: those up to here are the reader's. */
  private read = 0;
  private offer: 'open' | 'kept' | 'left' = 'open';
  private returned: readonly DatEvent[] | undefined = undefined;

  constructor(
    private readonly events: DatEvent[],
    private readonly source: BatchSource,
  ) {
    this.batch = new Proxy(events, this);
  }

  /** The loop goes on: the whole batch is its own. */
  keep(): void {
    if (this.offer === 'open') this.offer = 'kept';
  }

  /** The loop is left: what it has not read goes back. */
  leave(): void {
    if (this.offer !== 'open') return;
    const { events, read } = this;
    const rest = events.slice(read);
    if (rest.length > 0) this.source.putBack(rest);
    this.offer = read > 0 ? 'kept' : 'left';
    // A loop that is left with the batch itself (`return batch`) may still read it.
    if (read > 0) events.length -= rest.length;
    else this.returned = rest;
  }

  get(events: DatEvent[], key: string | symbol): unknown {
    // The iterator of arrays, without the detour of the proxy at each step.
    if (key === Symbol.iterator) return () => new BatchReader(this);
    if (this.offer !== 'kept' && typeof key === 'string') {
      this.lookBack();
      this.reach(Number(key));
    }
    return Reflect.get(events, key);
  }

  /** The event at an index, which is read by that; undefined behind the last. */
  at(index: number): DatEvent | undefined {
    if (this.offer !== 'kept') {
      this.lookBack();
      this.reach(index);
    }
    return this.events[index];
  }

  /** After the loop: is the batch still to be had? */
  private lookBack(): void {
    if (this.returned === undefined || this.source.hasStill(this.returned)) return;
    this.settle();
    this.events.length = 0;
  }

  /** The event at an index is read; an index of none, as behind the last, reads nothing. */
  private reach(index: number): void {
    if (!Number.isInteger(index) || index < 0 || index >= this.events.length) return;
    if (this.returned === undefined) {
      if (index >= this.read) this.read = index + 1;
      return;
    }
    this.source.takeAgain(this.returned);
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
