/**
 * A hierarchical timing wheel (Varghese and Lauck 1987, scheme 7): starting and stopping are O(1)
 * and allocate nothing, expiry costs at most one move per level. A timer sits on the level of the
 * highest 6-bit digit in which its tick differs from the present one, so slots never wrap around.
 */
import type { TimerEntry, Timers } from './timers.js';

const TICK_US = 16;
const SLOT_BITS = 6;
const SLOTS = 1 << SLOT_BITS;
/** 16 us * 64^8 is 142 years; later timers (Infinity) wait in the last slot. */
const LEVELS = 8;
/** Slot of a timer that is due and waits within `advance`. */
const DUE = LEVELS * SLOTS;
const SPAN = Array.from({ length: LEVELS + 1 }, (_, level) => SLOTS ** level);
/** Timers of a slot searched for an exact deadline; with more, the slot's start is the bound. */
const EXACT_LIMIT = 64;

export class TimerWheel implements Timers {
  private readonly heads: (TimerEntry | null)[] = new Array<TimerEntry | null>(DUE + 1).fill(null);
  private readonly tails: (TimerEntry | null)[] = new Array<TimerEntry | null>(DUE + 1).fill(null);
  /** Two words of occupied-slot bits for each level. */
  private readonly occupied = new Uint32Array(LEVELS * 2);
  private tick: number;
  /** No timer is due before this time: an earlier look need not call `advance`. */
  dueUs = Infinity;
  private activeCount = 0;
  /** The latest deadline of a timer that was started as exact. */
  private exactUs = -Infinity;

  /**
   * @param nowUs the clock's current reading
   * @param onStart called when a timer has been started: what wakes at `nextDeadlineUs` may have to
   * wake earlier
   */
  constructor(
    nowUs = 0,
    private readonly onStart: () => void = () => undefined,
  ) {
    this.tick = tickOf(nowUs);
  }

  /** Timers that have not expired. */
  get size(): number {
    return this.activeCount;
  }

  /** True if `dueUs` is to be met to a fraction of a millisecond. */
  get isExact(): boolean {
    return this.dueUs <= this.exactUs;
  }

  start(timer: TimerEntry, deadlineUs: number, exact = false): void {
    if (timer.slot >= 0) this.unlink(timer);
    if (exact && deadlineUs > this.exactUs) this.exactUs = deadlineUs;
    timer.deadlineUs = deadlineUs;
    if (deadlineUs < this.dueUs) this.dueUs = deadlineUs;
    this.insert(timer);
    this.activeCount += 1;
    this.onStart();
  }

  stop(timer: TimerEntry): void {
    if (timer.slot >= 0) this.unlink(timer);
  }

  /**
   * Runs, in order of their deadlines, the timers due at `nowUs`. Timers that a handler starts run
   * at the next call at the earliest; those that it stops do not run.
   * @returns the number of handlers run
   */
  advance(nowUs: number): number {
    this.collect(nowUs);
    let fired = 0;
    let timer = this.heads[DUE] as TimerEntry | null;
    while (timer !== null) {
      this.unlink(timer);
      fired += 1;
      timer.expire(nowUs);
      timer = this.heads[DUE] as TimerEntry | null;
    }
    this.nextDeadlineUs();
    return fired;
  }

  /**
   * No timer is due before this time; Infinity without timers. It is the earliest deadline itself,
   * or with very many timers close together less than their slot's width early: the `advance` at
   * that time spreads them.
   */
  nextDeadlineUs(): number {
    this.dueUs = this.earliestUs();
    return this.dueUs;
  }

  private earliestUs(): number {
    for (let level = 0; level < LEVELS; level++) {
      const slot = this.firstSlot(level);
      if (slot < 0) continue;
      const start = this.slotStart(level, slot);
      // There is nothing to spread in the present tick.
      const limit = start > this.tick ? EXACT_LIMIT : Infinity;
      let earliest = Infinity;
      let timer = this.heads[level * SLOTS + slot] as TimerEntry | null;
      for (let seen = 0; timer !== null; seen++, timer = timer.next) {
        if (seen === limit) return Math.min(start * TICK_US, earliest);
        earliest = Math.min(earliest, timer.deadlineUs);
      }
      return earliest;
    }
    return Infinity;
  }

  /** Moves the wheel to `nowUs` and due timers to the DUE list. */
  private collect(nowUs: number): void {
    const target = tickOf(nowUs);
    for (;;) {
      const next = this.nextSlot();
      if (next < 0) break;
      const level = next >>> SLOT_BITS;
      const start = this.slotStart(level, next & (SLOTS - 1));
      if (start > target) break;
      if (start > this.tick) this.tick = start;
      if (level > 0) this.cascade(next);
      else if (this.takeDue(next, nowUs)) break;
    }
    if (target > this.tick) this.tick = target;
  }

  /** Moves the timers of a slot of a higher level to their present places. */
  private cascade(from: number): void {
    let timer = this.heads[from] as TimerEntry | null;
    this.heads[from] = null;
    this.tails[from] = null;
    this.clearBit(from);
    while (timer !== null) {
      const following: TimerEntry | null = timer.next;
      this.insert(timer);
      timer = following;
    }
  }

  /** Returns true if some timers of the slot are not due yet: then no later slot is due. */
  private takeDue(from: number, nowUs: number): boolean {
    let timer = this.heads[from] as TimerEntry | null;
    while (timer !== null) {
      const following: TimerEntry | null = timer.next;
      if (timer.deadlineUs <= nowUs) {
        this.unlink(timer);
        this.activeCount += 1;
        this.insertDue(timer);
      }
      timer = following;
    }
    return this.heads[from] !== null;
  }

  /** Sorted by deadline: the list comes slot by slot, so the place is near the tail. */
  private insertDue(timer: TimerEntry): void {
    let before = this.tails[DUE] as TimerEntry | null;
    while (before !== null && before.deadlineUs > timer.deadlineUs) before = before.prev;
    const after = before === null ? (this.heads[DUE] as TimerEntry | null) : before.next;
    this.link(timer, DUE, before, after);
  }

  private insert(timer: TimerEntry): void {
    const when = Math.max(tickOf(timer.deadlineUs), this.tick);
    let level = 0;
    while (
      level < LEVELS - 1 &&
      Math.floor(when / SPAN[level + 1]!) !== Math.floor(this.tick / SPAN[level + 1]!)
    ) {
      level += 1;
    }
    const digit = Math.floor(when / SPAN[level]!);
    const beyond = Math.floor(when / SPAN[LEVELS]!) !== Math.floor(this.tick / SPAN[LEVELS]!);
    const slot = beyond ? SLOTS - 1 : digit % SLOTS;
    const index = level * SLOTS + slot;
    this.occupied[level * 2 + (slot >>> 5)]! |= 1 << (slot & 31);
    this.link(timer, index, this.tails[index] as TimerEntry | null, null);
  }

  private link(
    timer: TimerEntry,
    slot: number,
    before: TimerEntry | null,
    after: TimerEntry | null,
  ): void {
    timer.slot = slot;
    timer.prev = before;
    timer.next = after;
    if (before === null) this.heads[slot] = timer;
    else before.next = timer;
    if (after === null) this.tails[slot] = timer;
    else after.prev = timer;
  }

  private unlink(timer: TimerEntry): void {
    const { slot, prev, next } = timer;
    if (prev === null) this.heads[slot] = next;
    else prev.next = next;
    if (next === null) this.tails[slot] = prev;
    else next.prev = prev;
    timer.prev = null;
    timer.next = null;
    timer.slot = -1;
    this.activeCount -= 1;
    if (slot !== DUE && this.heads[slot] === null) this.clearBit(slot);
  }

  private clearBit(index: number): void {
    const slot = index & (SLOTS - 1);
    this.occupied[(index >>> SLOT_BITS) * 2 + (slot >>> 5)]! &= ~(1 << (slot & 31));
  }

  /** The slot that comes first in time: lower levels lie before higher ones. */
  private nextSlot(): number {
    for (let level = 0; level < LEVELS; level++) {
      const slot = this.firstSlot(level);
      if (slot >= 0) return level * SLOTS + slot;
    }
    return -1;
  }

  /** Every occupied slot lies at or after the present digit, so the lowest bit is the first. */
  private firstSlot(level: number): number {
    const low = this.occupied[level * 2]!;
    if (low !== 0) return 31 - Math.clz32(low & -low);
    const high = this.occupied[level * 2 + 1]!;
    return high === 0 ? -1 : 63 - Math.clz32(high & -high);
  }

  /** First tick of a slot of the present round of its level. */
  private slotStart(level: number, slot: number): number {
    const round = Math.floor(this.tick / SPAN[level + 1]!);
    return round * SPAN[level + 1]! + slot * SPAN[level]!;
  }
}

function tickOf(timeUs: number): number {
  return Math.floor(timeUs / TICK_US);
}
