/** xorshift32: the same seed gives the same test on every machine. */
export class SeededRandom {
  #state: number;

  constructor(seed: number) {
    this.#state = seed | 0 || 1;
  }

  uint32(): number {
    let x = this.#state;
    x ^= x << 13;
    x ^= x >>> 17;
    x ^= x << 5;
    this.#state = x;
    return x >>> 0;
  }

  /** 0 to `limit` - 1. */
  below(limit: number): number {
    return this.uint32() % limit;
  }

  bytes(length: number): Uint8Array {
    const bytes = new Uint8Array(length);
    for (let at = 0; at < length; at += 1) bytes[at] = this.uint32() >>> 11;
    return bytes;
  }
}
