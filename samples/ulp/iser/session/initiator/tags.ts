/**
 * Initiator task tags. A tag names one task until it has ended. Later answers are recognised for a
 * while, because each reuse of a place has a different tag.
 */
import { RESERVED_TAG } from '../../wire/index.js';

const PLACE_BITS = 12;
const PLACES = 1 << PLACE_BITS;
const ROUNDS = 2 ** (32 - PLACE_BITS);

export class Tags<T> {
  private readonly tasks: (T | undefined)[];
  private readonly rounds: Uint32Array;
  private readonly free: number[];

  /** @param limit tasks at a time, 1 to 4095 */
  constructor(readonly limit: number) {
    if (!Number.isInteger(limit) || limit < 1 || limit >= PLACES) {
      throw new RangeError(`tasks at a time are ${limit}, must be 1 to ${PLACES - 1}`);
    }
    this.tasks = new Array<T | undefined>(limit).fill(undefined);
    this.rounds = new Uint32Array(limit);
    this.free = Array.from({ length: limit }, (_, place) => limit - 1 - place);
  }

  /** Tasks that have a tag. */
  get size(): number {
    return this.limit - this.free.length;
  }

  /** A tag that no task has; undefined when all are in use. */
  take(task: T): number | undefined {
    const place = this.free.pop();
    if (place === undefined) return undefined;
    this.tasks[place] = task;
    // The reserved tag would be of the last place of all, which no table has.
    return tagOf(place, this.rounds[place]!);
  }

  /** The task of a tag; undefined for a tag that is not in use. */
  get(tag: number): T | undefined {
    const place = tag % PLACES;
    if (tag === RESERVED_TAG || place >= this.limit) return undefined;
    return tagOf(place, this.rounds[place]!) === tag ? this.tasks[place] : undefined;
  }

  /** The task has ended: its tag does not come again before the place has come round. */
  release(tag: number): void {
    const place = tag % PLACES;
    if (this.get(tag) === undefined) throw new Error(`tag ${tag} is not in use`);
    this.tasks[place] = undefined;
    this.rounds[place] = (this.rounds[place]! + 1) % ROUNDS;
    this.free.push(place);
  }

  /** Tasks that have a tag, with it. */
  *[Symbol.iterator](): IterableIterator<readonly [tag: number, task: T]> {
    for (let place = 0; place < this.limit; place++) {
      const task = this.tasks[place];
      if (task !== undefined) yield [tagOf(place, this.rounds[place]!), task];
    }
  }
}

function tagOf(place: number, round: number): number {
  return round * PLACES + place;
}
