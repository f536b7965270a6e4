/** Time, tasks and counters that a test moves by hand. */
import type {
  Clock,
  ProcessHold,
  Random,
  Scheduler,
  TimerEntry,
  Timers,
} from '../../core/spi/index.js';

export class FakeWorld implements Clock, Scheduler, ProcessHold, Random, Timers {
  nowUs = 0;
  retained = 0;
  private tasks: (() => void)[] = [];
  private readonly timers = new Set<TimerEntry>();
  private seed = 1;

  now(): number {
    return this.nowUs;
  }

  defer(task: () => void): void {
    this.tasks.push(task);
  }

  /** No time passes while a task runs. */
  mayStart(): boolean {
    return true;
  }

  retain(): void {
    this.retained++;
  }

  release(): void {
    if (this.retained === 0) throw new Error('released more often than retained');
    this.retained--;
  }

  u32(): number {
    this.seed = (Math.imul(this.seed, 1664525) + 1013904223) >>> 0;
    return this.seed;
  }

  start(timer: TimerEntry, deadlineUs: number): void {
    timer.deadlineUs = deadlineUs;
    timer.slot = 0;
    this.timers.add(timer);
  }

  stop(timer: TimerEntry): void {
    timer.slot = -1;
    this.timers.delete(timer);
  }

  get tasksWaiting(): number {
    return this.tasks.length;
  }

  get timersRunning(): number {
    return this.timers.size;
  }

  /** Runs deferred tasks, and those that they defer. */
  pump(): void {
    while (this.tasks.length > 0) {
      const tasks = this.tasks;
      this.tasks = [];
      for (const task of tasks) task();
    }
  }

  /** Lets time pass, expires timers, pumps. */
  advance(us: number): void {
    this.nowUs += us;
    for (const timer of [...this.timers]) {
      if (timer.deadlineUs > this.nowUs) continue;
      this.stop(timer);
      timer.expire(this.nowUs);
    }
    this.pump();
  }

  /** Pumps, and lets promises settle in between. */
  async settle(): Promise<void> {
    for (let i = 0; i < 10; i++) {
      this.pump();
      await Promise.resolve();
    }
  }
}
