/**
 * Virtual time: a heap of pending tasks. Time stands still while a task runs, and then jumps to the
 * earliest one left. Tasks of the same time run in the order of their requests.
 */
import { checkValue, numberFrom, outOfRange } from '../../core/spi/checks/index.js';
import type { Clock } from '../../core/spi/index.js';

const START = numberFrom(0, Number.MAX_SAFE_INTEGER);

/** Something that is to happen, once. */
export interface VirtualEvent {
  readonly timeUs: number;
}

interface HeapEntry extends VirtualEvent {
  readonly order: number;
  task: (() => void) | undefined;
}

export class VirtualClock implements Clock {
  private readonly heap: HeapEntry[] = [];
  private nowUs: number;
  private order = 0;
  private live = 0;
  private stepping = false;

  /**
   * @param startUs 0 to 2^53 - 1
   * @param onScheduled called from `at` whenever something new is to happen
   * @throws RangeError
   */
  constructor(
    startUs = 0,
    private readonly onScheduled: () => void = () => undefined,
  ) {
    checkValue('startUs', startUs, START, outOfRange);
    this.nowUs = startUs;
  }

  now(): number {
    return this.nowUs;
  }

  /** The number of pending tasks. */
  get pending(): number {
    return this.live;
  }

  /** The time of the next task, or Infinity. */
  get nextUs(): number {
    this.dropCancelled();
    return this.heap[0]?.timeUs ?? Infinity;
  }

  /** Lets `task` happen at a time in microseconds; a past time is now. Never runs it itself. */
  at(timeUs: number, task: () => void): VirtualEvent {
    if (Number.isNaN(timeUs) || timeUs === Infinity) {
      throw outOfRange('time', timeUs, 'finite');
    }
    const entry = { timeUs: Math.max(timeUs, this.nowUs), order: this.order++, task };
    this.live++;
    this.push(entry);
    this.onScheduled();
    return entry;
  }

  /** Lets `task` happen at the present time, after the present step. */
  soon(task: () => void): VirtualEvent {
    return this.at(this.nowUs, task);
  }

  /** Cancels a task; does nothing if it has run or was cancelled. */
  cancel(event: VirtualEvent): void {
    const entry = event as HeapEntry;
    if (entry.task === undefined) return;
    entry.task = undefined;
    this.live--;
  }

  /**
   * Jumps to the next thing and lets all happen that was to happen at that time; what they ask for
   * waits for the next step.
   * @returns false when there was nothing
   * @throws Error when called from inside a step
   */
  step(): boolean {
    const timeUs = this.nextUs;
    if (timeUs === Infinity) return false;
    if (this.stepping) throw new Error('virtual time is being stepped already');
    this.stepping = true;
    this.nowUs = timeUs;
    const before = this.order;
    try {
      for (;;) {
        const entry = this.heap[0];
        if (entry === undefined || entry.timeUs > timeUs || entry.order >= before) break;
        this.pop();
        const task = entry.task;
        if (task === undefined) continue;
        entry.task = undefined;
        this.live--;
        task();
      }
    } finally {
      this.stepping = false;
    }
    return true;
  }

  /** Moves time forward to where nothing happens on the way. @throws RangeError otherwise */
  skipTo(timeUs: number): void {
    if (timeUs > this.nextUs) throw new RangeError('something happens before that time');
    this.nowUs = Math.max(this.nowUs, timeUs);
  }

  private dropCancelled(): void {
    while (this.heap.length > 0 && this.heap[0]?.task === undefined) this.pop();
  }

  private push(entry: HeapEntry): void {
    const heap = this.heap;
    let at = heap.length;
    heap.push(entry);
    while (at > 0) {
      const parent = (at - 1) >> 1;
      const above = heap[parent] as HeapEntry;
      if (!isBefore(entry, above)) break;
      heap[at] = above;
      at = parent;
    }
    heap[at] = entry;
  }

  private pop(): void {
    const heap = this.heap;
    const last = heap.pop() as HeapEntry;
    if (heap.length === 0) return;
    let at = 0;
    for (;;) {
      let child = at * 2 + 1;
      if (child >= heap.length) break;
      const right = heap[child + 1];
      if (right !== undefined && isBefore(right, heap[child] as HeapEntry)) child++;
      const least = heap[child] as HeapEntry;
      if (!isBefore(least, last)) break;
      heap[at] = least;
      at = child;
    }
    heap[at] = last;
  }
}

function isBefore(a: HeapEntry, b: HeapEntry): boolean {
  return a.timeUs < b.timeUs || (a.timeUs === b.timeUs && a.order < b.order);
}

/** One re-armable deadline in virtual time: what a driver has in place of a real timer. */
export class VirtualTimer {
  private event: VirtualEvent | undefined;
  private deadlineUs = Infinity;

  constructor(
    private readonly clock: VirtualClock,
    private readonly onDeadline: () => void,
  ) {}

  /** Sets the deadline in microseconds; Infinity for none. Replaces an earlier one. */
  arm(deadlineUs: number): void {
    if (deadlineUs === this.deadlineUs) return;
    if (this.event) this.clock.cancel(this.event);
    this.event = undefined;
    this.deadlineUs = deadlineUs;
    if (deadlineUs === Infinity) return;
    this.event = this.clock.at(deadlineUs, () => {
      this.event = undefined;
      this.deadlineUs = Infinity;
      this.onDeadline();
    });
  }

  close(): void {
    this.arm(Infinity);
  }
}
