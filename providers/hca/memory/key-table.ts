/**
 * Open-addressing hash table from a u32 key to an object: the look-up of lkeys and rkeys on the
 * packet path. A `Map` would box every key above 2^31; this one reads a Uint32Array. Key 0 is never
 * in the table.
 */
export class KeyTable<T> {
  private keys = new Uint32Array(64);
  private values: (T | undefined)[] = new Array<T | undefined>(64).fill(undefined);
  private mask = 63;
  private count = 0;

  get size(): number {
    return this.count;
  }

  /** Keys are random, so their low bits are a hash already. */
  find(key: number): T | undefined {
    if (key === 0) return undefined;
    const { keys, mask } = this;
    let at = key & mask;
    for (;;) {
      const found = keys[at]!;
      if (found === key) return this.values[at];
      if (found === 0) return undefined;
      at = (at + 1) & mask;
    }
  }

  *[Symbol.iterator](): Iterator<T> {
    for (const value of this.values) if (value !== undefined) yield value;
  }

  /** @param key 1 to 2^32 - 1, not in the table */
  insert(key: number, value: T): void {
    if (this.count * 2 >= this.mask) this.grow();
    this.put(key, value);
    this.count += 1;
  }

  remove(key: number): void {
    let at = key & this.mask;
    while (this.keys[at] !== key) {
      if (this.keys[at] === 0) return;
      at = (at + 1) & this.mask;
    }
    this.keys[at] = 0;
    this.values[at] = undefined;
    this.count -= 1;
    this.closeGap(at);
  }

  /** Moves followers of a removed key back, so that a search never stops short of them. */
  private closeGap(gap: number): void {
    let at = gap;
    for (;;) {
      at = (at + 1) & this.mask;
      const key = this.keys[at]!;
      if (key === 0) return;
      const value = this.values[at] as T;
      this.keys[at] = 0;
      this.values[at] = undefined;
      this.put(key, value);
    }
  }

  private put(key: number, value: T): void {
    let at = key & this.mask;
    while (this.keys[at] !== 0) at = (at + 1) & this.mask;
    this.keys[at] = key;
    this.values[at] = value;
  }

  private grow(): void {
    const { keys, values } = this;
    const size = keys.length * 2;
    this.keys = new Uint32Array(size);
    this.values = new Array<T | undefined>(size).fill(undefined);
    this.mask = size - 1;
    for (let i = 0; i < keys.length; i++) if (keys[i] !== 0) this.put(keys[i]!, values[i] as T);
  }
}
