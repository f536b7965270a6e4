/** Matches received items with pending requests for them. */
import { type EndError, type WaitHost, type WaitOptions, Waits } from './wait.js';

/** Items in order; each is handed to one taker. */
export class Inbox<T> {
  private readonly items: T[] = [];
  private readonly waits: Waits<T>;
  private ended: EndError | undefined = undefined;

  /**
   * @param onTaken the item is handed over: called before its taker has it
   * @param explanation what is to be said of a wait that ends early
   */
  constructor(
    host: WaitHost,
    private readonly onTaken: (item: T) => void,
    explanation?: () => string,
  ) {
    this.waits = new Waits(host, explanation);
  }

  /** Items that no call has asked for. */
  get size(): number {
    return this.items.length;
  }

  /** True if a call waits for the next item. */
  get isAwaited(): boolean {
    return !this.waits.isEmpty;
  }

  put(item: T): void {
    if (this.waits.isEmpty) {
      this.items.push(item);
      return;
    }
    this.onTaken(item);
    this.waits.serve(item);
  }

  /** @param options checked by `checkWait` */
  take(operation: string, options: WaitOptions): Promise<T> {
    const item = this.items.shift();
    if (item !== undefined) {
      this.onTaken(item);
      return Promise.resolve(item);
    }
    if (this.ended !== undefined) return Promise.reject(this.ended(operation));
    return this.waits.add(operation, options);
  }

  /** Ends the inbox. Queued items can still be taken; then takers get this error. */
  end(errorOf: EndError): void {
    this.ended ??= errorOf;
    this.waits.end(this.ended);
  }

  /** Empties it. */
  drop(): T[] {
    return this.items.splice(0);
  }
}

/**
 * Iterates the items, for `for await`.
 * @param isOver the error of `take` is an end in order: the iteration just ends
 */
export function iterate<T>(
  take: () => Promise<T>,
  isOver: () => boolean,
): AsyncIterableIterator<T> {
  const yielded = (value: T): IteratorResult<T> => ({ value, done: false });
  const failed = (error: unknown): IteratorResult<T> => {
    if (!isOver()) throw error;
    return { value: undefined, done: true };
  };
  return {
    next: () => take().then(yielded, failed),
    return: () => Promise.resolve({ value: undefined, done: true }),
    [Symbol.asyncIterator]() {
      return this;
    },
  };
}
