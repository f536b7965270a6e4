/**
 * Virtual time for tests of sans-IO modules: a clock, timers, deferred tasks and messages under
 * way, run in order of time by `run`. Nothing here knows a device.
 */
import type { Clock, Random, Scheduler, Timer, Timers } from '../../core/spi/index.js';

interface Due {
  readonly atUs: number;
  readonly order: number;
  readonly task: () => void;
}

export class VirtualWorld implements Clock, Timers, Scheduler {
  private nowUs = 1_000_000;
  private order = 0;
  private readonly active = new Set<Timer>();
  private readonly due: Due[] = [];
  private tasks: (() => void)[] = [];

  now(): number {
    return this.nowUs;
  }

  start(timer: Timer, deadlineUs: number): void {
    timer.deadlineUs = deadlineUs;
    timer.slot = 0;
    this.active.add(timer);
  }

  stop(timer: Timer): void {
    timer.slot = -1;
    this.active.delete(timer);
  }

  defer(task: () => void): void {
    this.tasks.push(task);
  }

  /** Runs a task after a delay, as the network does. */
  after(delayUs: number, task: () => void): void {
    this.due.push({ atUs: this.nowUs + delayUs, order: this.order++, task });
  }

  get activeTimers(): number {
    return this.active.size;
  }

  /** Runs what is due until `untilUs`, or until nothing is left; microtasks run between steps. */
  async run(untilUs = Infinity): Promise<void> {
    let steps = 0;
    for (;;) {
      await Promise.resolve();
      if (++steps > 200_000) throw new Error('the virtual world does not come to rest');
      if (this.runTasks()) continue;
      const next = this.nextUs();
      if (next === Infinity || next > untilUs) break;
      this.nowUs = Math.max(this.nowUs, next);
      this.runDue();
    }
    if (untilUs < Infinity) this.nowUs = Math.max(this.nowUs, untilUs);
  }

  /** Runs for that long. */
  runFor(durationUs: number): Promise<void> {
    return this.run(this.nowUs + durationUs);
  }

  private runTasks(): boolean {
    const { tasks } = this;
    if (tasks.length === 0) return false;
    this.tasks = [];
    for (const task of tasks) task();
    return true;
  }

  private nextUs(): number {
    let next = Infinity;
    for (const timer of this.active) next = Math.min(next, timer.deadlineUs);
    for (const { atUs } of this.due) next = Math.min(next, atUs);
    return next;
  }

  private runDue(): void {
    const now = this.nowUs;
    const arrivals = this.due.filter(({ atUs }) => atUs <= now);
    arrivals.sort((a, b) => a.atUs - b.atUs || a.order - b.order);
    const later = this.due.filter(({ atUs }) => atUs > now);
    this.due.length = 0;
    this.due.push(...later);
    for (const { task } of arrivals) task();
    for (const timer of [...this.active]) {
      if (timer.deadlineUs > now || !this.active.has(timer)) continue;
      this.stop(timer);
      timer.onExpire(now);
    }
  }
}

/** A small seeded generator (mulberry32): good enough to vary tests, and the same every time. */
export class SeededRandom implements Random {
  constructor(private state: number) {}

  u32(): number {
    this.state = (this.state + 0x6d2b79f5) | 0;
    let t = this.state;
    t = Math.imul(t ^ (t >>> 15), t | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return (t ^ (t >>> 14)) >>> 0;
  }

  /** True in `share` of the cases. */
  chance(share: number): boolean {
    return this.u32() / 2 ** 32 < share;
  }
}
