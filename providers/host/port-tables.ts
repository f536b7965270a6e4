/** Tables of packet ports in JavaScript: paths, regions, objects by number. */
import { type Gid, ipFromGid, isIpv4Gid, PLACE, SpiError } from '../../core/spi/index.js';

interface Entry {
  readonly key: string;
  readonly path: number;
  users: number;
}

/** Counted destinations: the same arguments give the same number until all users have let go. */
export class PathTable {
  private readonly byKey = new Map<string, Entry>();
  private readonly byPath = new Map<number, Entry>();

  constructor(private readonly gids: readonly Gid[]) {}

  /**
   * @param kind paths of different kinds are different paths
   * @param create makes a path that is not there yet
   * @throws RangeError when the local address is unknown or of another family
   */
  add(gid: Gid, localGidIndex: number, create: () => number, kind = ''): number {
    const local = this.gids[localGidIndex];
    if (!local) throw new RangeError(`no local address ${String(localGidIndex)}`);
    if (isIpv4Gid(local) !== isIpv4Gid(gid)) {
      throw new RangeError(`${ipFromGid(local)} cannot reach ${ipFromGid(gid)}: other family`);
    }
    const key = `${String(localGidIndex)} ${gid.join(' ')} ${kind}`;
    let entry = this.byKey.get(key);
    if (!entry) {
      entry = { key, path: create(), users: 0 };
      this.byKey.set(key, entry);
      this.byPath.set(entry.path, entry);
    }
    entry.users++;
    return entry.path;
  }

  /**
   * @returns true if that was the last user
   * @throws RangeError when there is no such path
   */
  remove(path: number): boolean {
    const entry = this.byPath.get(path);
    if (!entry) throw new RangeError(`no path ${String(path)}`);
    if (--entry.users > 0) return false;
    this.byKey.delete(entry.key);
    this.byPath.delete(path);
    return true;
  }
}

/** Objects by small numbers: a free number is given out again. */
export class Numbered<T extends object> {
  private readonly things: (T | undefined)[] = [];

  /** @param what they are, for errors */
  constructor(private readonly what: string) {}

  add(thing: T): number {
    const free = this.things.indexOf(undefined);
    const number = free < 0 ? this.things.length : free;
    this.things[number] = thing;
    return number;
  }

  find(number: number): T | undefined {
    return this.things[number];
  }

  /** @throws RangeError when there is none of that number */
  get(number: number): T {
    const thing = this.things[number];
    if (thing === undefined) throw new RangeError(`no ${this.what} ${number}`);
    return thing;
  }

  /** @throws RangeError when there is none of that number */
  remove(number: number): T {
    const thing = this.get(number);
    this.things[number] = undefined;
    return thing;
  }

  clear(): void {
    this.things.length = 0;
  }

  /** The number of the first one that fits; -1 for none. */
  numberOf(fits: (thing: T) => boolean): number {
    return this.things.findIndex((thing) => thing !== undefined && fits(thing));
  }

  /** The number of entries. */
  get size(): number {
    return this.things.reduce((sum, thing) => sum + (thing === undefined ? 0 : 1), 0);
  }
}

// Memory that a port of JavaScript may read and write; every access is checked for its bounds.

const TWO_32 = 2 ** 32;

/** @throws SpiError('EINVAL') for memory that may move or shrink, is detached or too short */
export function checkRegion(
  memory: ArrayBufferLike,
  byteOffset: number,
  byteLength: number,
): Uint8Array {
  const state = memory as { resizable?: boolean; growable?: boolean; detached?: boolean };
  if (state.resizable === true || state.growable === true) {
    throw new SpiError('EINVAL', 'resizable memory cannot be registered: it may shrink');
  }
  if (state.detached === true) {
    throw new SpiError('EINVAL', 'a detached ArrayBuffer cannot be registered');
  }
  const end = byteOffset + byteLength;
  if (end > memory.byteLength) {
    throw new SpiError('EINVAL', `the range ends at ${end} of ${memory.byteLength} bytes`);
  }
  return new Uint8Array(memory, byteOffset, byteLength);
}

export class RegionTable {
  private readonly regions = new Numbered<Uint8Array>('region');

  /** @throws SpiError('EINVAL'): see `checkRegion` */
  add(memory: ArrayBufferLike, byteOffset: number, byteLength: number): number {
    return this.regions.add(checkRegion(memory, byteOffset, byteLength));
  }

  /** @throws RangeError when there is no such region */
  remove(region: number): void {
    this.regions.remove(region);
  }

  /**
   * Checks that a range lies wholly in its region; memory that was transferred away has become
   * empty.
   * @returns the whole region, in which the range begins at `offset`
   * @throws RangeError otherwise
   */
  resolve(region: number, offset: number, length: number): Uint8Array {
    const memory = this.regions.get(region);
    if (offset + length > memory.length) {
      throw new RangeError(`range ${offset} + ${length} in a region of ${memory.length} bytes`);
    }
    return memory;
  }

  /**
   * Moves payloads from the arena to their regions, as a port does at `place`.
   * @param words of `count` placements
   * @throws RangeError for one that is out of bounds
   */
  place(words: Uint32Array, count: number, arena: Uint8Array): void {
    for (let at = 0; at < count * PLACE.WORDS; at += PLACE.WORDS) {
      const source = words[at + PLACE.SOURCE]!;
      const length = words[at + PLACE.LENGTH]!;
      const offset = offsetAt(words, at + PLACE.OFFSET_LO);
      const target = this.resolve(words[at + PLACE.REGION]!, offset, length);
      if (source + length > arena.length) {
        throw new RangeError(`source ${source} + ${length} is outside of the arena`);
      }
      copyBytes(arena, source, target, offset, length);
    }
  }

  clear(): void {
    this.regions.clear();
  }

  /** Regions in use. */
  get size(): number {
    return this.regions.size;
  }
}

/** An offset of two words. */
export function offsetAt(words: Uint32Array, at: number): number {
  return words[at]! + words[at + 1]! * TWO_32;
}

/** Short copies are quicker by hand than through a subarray. */
export function copyBytes(
  source: Uint8Array,
  from: number,
  target: Uint8Array,
  to: number,
  length: number,
): void {
  if (length > 64) target.set(source.subarray(from, from + length), to);
  else for (let i = 0; i < length; i++) target[to + i] = source[from + i]!;
}
