/**
 * Memory with guards around every registered region, and around every part of a region that a work
 * request or a window opens. Bytes change only where something is open: all others are compared
 * with what they were.
 */
import { Violation } from '../sim/trace.js';

/** What guards are filled with, so that an answer that carries them betrays itself. */
export const GUARD_BYTE = 0xa7;
const GUARD_BYTES = 256;

export interface Area {
  readonly start: number;
  readonly length: number;
}

export class GuardedMemory {
  readonly bytes: Uint8Array;
  private readonly shadow: Uint8Array;
  /** Lengths of what is open, by start. */
  private readonly opened = new Map<number, number>();

  private constructor(
    readonly name: string,
    bytes: Uint8Array,
  ) {
    this.bytes = bytes;
    this.shadow = bytes.slice();
  }

  /**
   * Lays areas of these lengths out with guards before, between and after them.
   * @param fill gives the first content of an area; guards stay what they are
   */
  static make<K extends string>(
    name: string,
    lengths: Readonly<Record<K, number>>,
    fill: (key: K, bytes: Uint8Array) => void,
  ): { readonly memory: GuardedMemory; readonly areas: Readonly<Record<K, Area>> } {
    let start = GUARD_BYTES;
    const areas: Partial<Record<K, Area>> = {};
    const keys = Object.keys(lengths) as K[];
    for (const key of keys) {
      areas[key] = { start, length: lengths[key] };
      start += (lengths[key] + GUARD_BYTES + 7) & ~7;
    }
    const bytes = new Uint8Array(start).fill(GUARD_BYTE);
    const all = areas as Readonly<Record<K, Area>>;
    for (const key of keys) {
      const { start: at, length } = all[key];
      fill(key, bytes.subarray(at, at + length));
    }
    return { memory: new GuardedMemory(name, bytes), areas: all };
  }

  /** From now on these bytes may change. */
  open({ start, length }: Area, what: string): void {
    this.compare(start, start + length, what);
    this.opened.set(start, length);
  }

  /** They may not any more: they stay what they are now. */
  close(start: number): void {
    const length = this.opened.get(start) ?? 0;
    this.opened.delete(start);
    this.shadow.set(this.bytes.subarray(start, start + length), start);
  }

  /** Nothing reaches this memory any more. */
  closeAll(): void {
    for (const start of [...this.opened.keys()]) this.close(start);
  }

  /** @throws Violation that names the first byte outside of what is open that has changed */
  verify(what: string): void {
    let from = 0;
    for (const [start, length] of [...this.opened].sort(([a], [b]) => a - b)) {
      this.compare(from, start, what);
      from = start + length;
    }
    this.compare(from, this.bytes.length, what);
  }

  private compare(from: number, to: number, what: string): void {
    const { bytes } = this;
    const shadow = this.shadow;
    if (Buffer.compare(bytes.subarray(from, to), shadow.subarray(from, to)) === 0) return;
    let at = from;
    while (bytes[at] === shadow[at]) at++;
    throw new Violation(
      `${what}: byte ${at} of ${this.name} is ${bytes[at]}, was ${shadow[at]}, ` +
        'and nothing grants it',
    );
  }
}
