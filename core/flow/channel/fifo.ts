/** A queue whose ends cost the same however long it is. */

/** The least that a queue has room for, and the most that one keeps while it is empty. */
const LEAST = 8;
const MOST_KEPT = 64;

/** A ring: what comes and goes one by one allocates nothing. */
export class Fifo<T> {
  /** Their number is 0 or a power of two. */
  private items: (T | undefined)[] = [];
  private head = 0;
  private count = 0;

  get length(): number {
    return this.count;
  }

  get first(): T | undefined {
    return this.items[this.head];
  }

  push(item: T): void {
    if (this.count === this.items.length) this.grow();
    this.items[this.place(this.count)] = item;
    this.count++;
  }

  shift(): T | undefined {
    const { first } = this;
    if (this.count === 0) return undefined;
    this.items[this.head] = undefined;
    this.head = this.place(1);
    this.count--;
    if (this.count === 0 && this.items.length > MOST_KEPT) this.clear();
    return first;
  }

  /** Takes all of them out. */
  drain(): T[] {
    const all = Array.from({ length: this.count }, (_, i) => this.items[this.place(i)] as T);
    this.clear();
    return all;
  }

  private place(behindHead: number): number {
    return (this.head + behindHead) & (this.items.length - 1);
  }

  private grow(): void {
    const all = this.drain();
    const room = Math.max(LEAST, 2 * all.length);
    this.items = [...all, ...new Array<undefined>(room - all.length).fill(undefined)];
    this.count = all.length;
  }

  private clear(): void {
    this.items = [];
    this.head = 0;
    this.count = 0;
  }
}
