/**
 * An independent model of one endpoint's memory: what is in it for sure (the shadow), and what may
 * be in it already (effects of requests that have not completed). Guard zones are never touched by
 * an effect, so any change there is found.
 */
import { Violation } from './trace.js';

/** Bytes that a request under way puts at an offset: all, some or none of them are there yet. */
export interface Effect {
  readonly offset: number;
  readonly data: Uint8Array;
}

export class MemoryModel {
  readonly shadow: Uint8Array;
  readonly pending = new Set<Effect>();

  constructor(
    private readonly name: string,
    readonly bytes: Uint8Array,
  ) {
    this.shadow = bytes.slice();
  }

  begin(effect: Effect): Effect {
    this.pending.add(effect);
    return effect;
  }

  /**
   * The request has succeeded: its bytes are there, but for what a later one may have put there.
   */
  commit(effect: Effect, what: string): void {
    this.pending.delete(effect);
    this.shadow.set(effect.data, effect.offset);
    this.checkRange(effect.offset, effect.data.length, [...this.pending], what);
  }

  /** The request has not been executed, and never will be. */
  drop(effect: Effect): void {
    this.pending.delete(effect);
  }

  /** Compares all memory; `more` are effects that may be under way besides. */
  verify(what: string, more: readonly Effect[] = []): void {
    if (Buffer.compare(this.bytes, this.shadow) === 0) return;
    this.checkRange(0, this.bytes.length, [...this.pending, ...more], what);
  }

  /** Takes a range as it is: what may have got there cannot be told. */
  adopt(offset: number, length: number): void {
    this.shadow.set(this.bytes.subarray(offset, offset + length), offset);
  }

  /** Nothing is under way any more: what there is now stays. Call after `verify`. */
  settle(): void {
    this.pending.clear();
    this.shadow.set(this.bytes);
  }

  private checkRange(
    offset: number,
    length: number,
    effects: readonly Effect[],
    what: string,
  ): void {
    for (let at = offset; at < offset + length; at++) {
      const actual = this.bytes[at];
      if (actual === this.shadow[at] || effects.some((effect) => explains(effect, at, actual))) {
        continue;
      }
      throw new Violation(
        `${what}: byte ${at} of ${this.name} is ${actual}, must be ${this.shadow[at]}` +
          (effects.some((effect) => covers(effect, at)) ? ' or what a pending request puts' : ''),
      );
    }
  }
}

function covers(effect: Effect, at: number): boolean {
  return at >= effect.offset && at < effect.offset + effect.data.length;
}

function explains(effect: Effect, at: number, actual: number | undefined): boolean {
  return covers(effect, at) && effect.data[at - effect.offset] === actual;
}
