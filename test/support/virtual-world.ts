/**
 * Virtual time for tests of sans-IO modules: a clock, timers, deferred tasks and messages under
 * way, run in order of time by `run`. Nothing here knows a device.
 */
import type { Clock, Scheduler, TimerEntry, Timers } from '../../core/spi/index.js';

/** Longer than any chain of promises here: each turn settles one link. */
const MICROTASK_TURNS = 12;

interface Due {
  readonly atUs: number;
  readonly order: number;
  readonly task: () => void;
}

export class VirtualWorld implements Clock, Timers, Scheduler {
  private nowUs = 1_000_000;
  private order = 0;
  private readonly active = new Set<TimerEntry>();
  private readonly due: Due[] = [];
  private tasks: (() => void)[] = [];
  /**
   * Timers expire at this moment. The consumer is called by none of them: the software HCA has them
   * expire in `Device.progress` too.
   */
  isExpiring = false;

  now(): number {
    return this.nowUs;
  }

  start(timer: TimerEntry, deadlineUs: number): void {
    timer.deadlineUs = deadlineUs;
    timer.slot = 0;
    this.active.add(timer);
  }

  stop(timer: TimerEntry): void {
    timer.slot = -1;
    this.active.delete(timer);
  }

  defer(task: () => void): void {
    this.tasks.push(task);
  }

  /** No time passes while a task runs. */
  mayStart(): boolean {
    return true;
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
      if (next === Infinity || next > untilUs) {
        if (await this.settle()) continue;
        break;
      }
      this.nowUs = Math.max(this.nowUs, next);
      this.runDue();
    }
    if (untilUs < Infinity) this.nowUs = Math.max(this.nowUs, untilUs);
  }

  /** Runs for that long. */
  runFor(durationUs: number): Promise<void> {
    return this.run(this.nowUs + durationUs);
  }

  /** Lets promises settle to the last; true if that led to something. */
  private async settle(): Promise<boolean> {
    const { order } = this;
    const timers = this.active.size;
    for (let turn = 0; turn < MICROTASK_TURNS; turn++) await Promise.resolve();
    return this.tasks.length > 0 || this.order !== order || this.active.size !== timers;
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
      this.isExpiring = true;
      timer.expire(now);
      this.isExpiring = false;
    }
  }
}
