/**
 * The pump of a verbs device: runs what came through its descriptors, its timers and deferred
 * tasks, one at a time, in the order in which they came, never inside a call of the consumer's. The
 * kernel moves the bytes; all that is driven here is handlers.
 */
import {
  type Clock,
  type Logger,
  type Scheduler,
  type TimerEntry,
  type Timers,
  TimerWheel,
} from '../../core/spi/index.js';
import { NextTurn, RealTimer } from '../host/index.js';

/** Tasks of one turn: then the event loop has its own, so that no descriptor starves. */
const MAX_TASKS = 1024;
/** Pumps in a row that follow a task at once: what rxe is given to do, it has done on return. */
const MAX_PUMPS = 64;

export class VerbsDriver implements Scheduler {
  /** A start outside of the pump moves the real timer too. */
  readonly timers: Timers;
  private readonly wheel: TimerWheel;
  private readonly timer: RealTimer;
  private tasks: (() => void)[] = [];
  private isQueued = false;
  private isPumping = false;
  private isClosed = false;
  private pumpsInARow = 0;
  /** Goes on when the event loop has had its turn. */
  private readonly turn = new NextTurn(() => {
    this.pumpsInARow = 0;
    this.pump();
  });

  constructor(
    private readonly clock: Clock,
    private readonly logger: Logger,
  ) {
    this.wheel = new TimerWheel(clock.now());
    this.timer = new RealTimer(clock, () => this.pump());
    this.timers = {
      start: (timer: TimerEntry, deadlineUs: number) => {
        this.wheel.start(timer, deadlineUs);
        if (!this.isPumping) this.armTimer();
      },
      stop: (timer: TimerEntry) => this.wheel.stop(timer),
    };
  }

  /** Runs a handler or a task in the pump under way, or in one at the end of the present task. */
  defer(task: () => void): void {
    this.tasks.push(task);
    if (this.isQueued || this.isPumping || this.turn.isPending) return;
    if (++this.pumpsInARow > MAX_PUMPS) {
      this.turn.request();
      return;
    }
    this.isQueued = true;
    queueMicrotask(() => this.pump());
  }

  setProcessHold(alive: boolean): void {
    this.timer.setProcessHold(alive);
    this.turn.setProcessHold(alive);
  }

  /** What is deferred already still runs; timers do not. */
  close(): void {
    this.isClosed = true;
    this.timer.close();
  }

  private pump(): void {
    this.isQueued = false;
    if (this.isPumping) return;
    this.isPumping = true;
    try {
      this.guard(() => this.wheel.advance(this.clock.now()));
      this.runTasks();
    } finally {
      this.isPumping = false;
    }
    this.armTimer();
    if (this.tasks.length > 0) this.turn.request();
  }

  private runTasks(): void {
    let done = 0;
    while (this.tasks.length > 0 && done < MAX_TASKS) {
      const batch = this.tasks;
      this.tasks = [];
      for (const task of batch) this.guard(task);
      done += batch.length;
    }
  }

  private guard(task: () => void): void {
    try {
      task();
    } catch (error) {
      this.logger.error('a handler threw', { error });
    }
  }

  private armTimer(): void {
    if (!this.isClosed) this.timer.arm(this.wheel.nextDeadlineUs());
  }
}
