/** First in, first out, in a circular array: whose turn it is to send. */
export class TurnQueue<T> {
  private items: (T | undefined)[] = new Array<T | undefined>(64).fill(undefined);
  private mask = 63;
  private head = 0;
  private tail = 0;

  get length(): number {
    return this.tail - this.head;
  }

  push(item: T): void {
    if (this.tail - this.head > this.mask) this.grow();
    this.items[this.tail & this.mask] = item;
    this.tail += 1;
  }

  /** The queue must not be empty. */
  shift(): T {
    const at = this.head & this.mask;
    const item = this.items[at] as T;
    this.items[at] = undefined;
    this.head += 1;
    if (this.head === this.tail) {
      this.head = 0;
      this.tail = 0;
    }
    return item;
  }

  private grow(): void {
    const items = new Array<T | undefined>((this.mask + 1) * 2).fill(undefined);
    const { length } = this;
    for (let i = 0; i < length; i++) items[i] = this.items[(this.head + i) & this.mask];
    this.items = items;
    this.mask = items.length - 1;
    this.head = 0;
    this.tail = length;
  }
}
