/**
 * Random numbers of the simulated world: xoshiro128** (Blackman and Vigna 2018), its state filled
 * by splitmix32. The same seed gives the same numbers on every machine.
 */
import { checkInteger, outOfRange } from '../../../core/spi/checks/index.js';
import type { Random } from '../../../core/spi/index.js';

export class SeededRandom implements Random {
  private readonly state = new Uint32Array(4);

  /** @param seed an integer from 0 to 2^53 - 1 */
  constructor(readonly seed: number) {
    checkInteger('seed', seed, 0, Number.MAX_SAFE_INTEGER, outOfRange);
    let mixed = (seed ^ Math.imul(Math.floor(seed / 2 ** 32), 0x85ebca6b)) >>> 0;
    for (let i = 0; i < 4; i++) {
      mixed = (mixed + 0x9e3779b9) >>> 0;
      let word = Math.imul(mixed ^ (mixed >>> 16), 0x21f0aaad);
      word = Math.imul(word ^ (word >>> 15), 0x735a2d97);
      this.state[i] = word ^ (word >>> 15);
    }
    if (this.state.every((word) => word === 0)) this.state[0] = 1;
  }

  u32(): number {
    const state = this.state;
    const s1 = state[1] as number;
    const times5 = Math.imul(s1, 5);
    const result = Math.imul((times5 << 7) | (times5 >>> 25), 9) >>> 0;
    state[2] = (state[2] as number) ^ (state[0] as number);
    state[3] = (state[3] as number) ^ s1;
    state[1] = s1 ^ state[2];
    state[0] = (state[0] as number) ^ state[3];
    state[2] = state[2] ^ (s1 << 9);
    const s3 = state[3];
    state[3] = (s3 << 11) | (s3 >>> 21);
    return result;
  }

  /** Uniform from 0 to 1, 1 excluded. */
  unit(): number {
    return this.u32() / 2 ** 32;
  }

  /** An integer from 0 to `limit` - 1. */
  below(limit: number): number {
    return Math.floor(this.unit() * limit);
  }

  /** An integer from `low` to `high`, both included. */
  between(low: number, high: number): number {
    return low + this.below(high - low + 1);
  }

  /**
   * True with this probability in percent; draws no number for 0, so that disabled faults cost
   * none.
   */
  percent(percent: number): boolean {
    return percent > 0 && this.unit() * 100 < percent;
  }

  /** Exponentially distributed with this mean. Engines differ in the last bits of a logarithm. */
  exponential(mean: number): number {
    return mean > 0 ? Math.fround(-Math.log(1 - this.unit())) * mean : 0;
  }

  bytes(length: number): Uint8Array {
    const bytes = new Uint8Array(length);
    for (let at = 0; at < length; at++) bytes[at] = this.u32() >>> 24;
    return bytes;
  }

  /** @throws RangeError for an empty list */
  pick<T>(items: readonly T[]): T {
    if (items.length === 0) throw new RangeError('nothing to pick from');
    return items[this.below(items.length)] as T;
  }

  /** A separate generator for one part of the world, so that parts do not disturb each other. */
  fork(): SeededRandom {
    return new SeededRandom(this.u32());
  }
}
