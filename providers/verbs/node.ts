/**
 * A verbs device of this process: the device, its driver, and the holds that keep the process
 * alive.
 */
import {
  type Clock,
  type Logger,
  type Scheduler,
  type Timers,
  TimerWheel,
} from '../../core/spi/index.js';
import { HandlerPacer } from '../hca/pacing/index.js';
import {
  EventLoop,
  type HostNode,
  monotonicClock,
  NODE_CALLS,
  ProcessHoldCounter,
  SystemRandom,
} from '../host/index.js';
import { VerbsDevice, type VerbsDeviceOptions } from './device.js';

// The pump of a verbs device: runs what came through its descriptors, its timers and deferred
// tasks, one at a time, in the order in which they came, never inside a call of the consumer's. The
// kernel moves the bytes; all that is driven here is handlers.

/** Tasks of one turn: then the event loop has its own, so that no descriptor starves. */
const MAX_TASKS = 1024;

export class VerbsDriver implements Scheduler {
  /** A start outside of the pump asks for one, which arms the real timer. */
  readonly timers: TimerWheel;
  private readonly loop: EventLoop;
  private readonly handlers = new HandlerPacer();
  private tasks: (() => void)[] = [];
  /** Tasks being run, and the number of those that have been. */
  private due: readonly (() => void)[] = [];
  private done = 0;
  private isPumping = false;
  private isClosed = false;

  constructor(
    private readonly clock: Clock,
    private readonly logger: Logger,
  ) {
    this.timers = new TimerWheel(clock.now(), () => this.requestPump());
    this.loop = new EventLoop(clock, NODE_CALLS, {
      pump: (_, goesOn) => this.pump(goesOn),
      nextDeadlineUs: () => (this.isClosed ? Infinity : this.timers.nextDeadlineUs()),
      isExact: false,
    });
  }

  /** Runs a handler or a task in the current pump, or in one at the end of the present task. */
  defer(task: () => void): void {
    this.tasks.push(task);
    this.requestPump();
  }

  mayStart(): boolean {
    const { handlers } = this;
    return handlers.startsUnseen() || handlers.startsAt(this.clock.now());
  }

  setProcessHold(alive: boolean): void {
    this.loop.setProcessHold(alive);
  }

  /** Closes the node. Tasks already deferred still run; timers do not. */
  close(): void {
    this.isClosed = true;
    this.requestPump();
  }

  private requestPump(): void {
    if (!this.isPumping) this.loop.request();
  }

  /** True when there is more to do. */
  private pump(goesOn: boolean): boolean {
    this.isPumping = true;
    try {
      const nowUs = this.clock.now();
      if (!this.isClosed) this.guard(() => this.timers.advance(nowUs));
      if (this.hasTasks && this.handlers.begins(nowUs, goesOn)) this.runTasks();
    } finally {
      this.isPumping = false;
    }
    return this.hasTasks;
  }

  private get hasTasks(): boolean {
    return this.done < this.due.length || this.tasks.length > 0;
  }

  private runTasks(): void {
    for (let rest = MAX_TASKS; rest > 0; rest--) {
      if (this.done === this.due.length) {
        this.due = this.tasks;
        this.tasks = [];
        this.done = 0;
      }
      this.guard(this.due[this.done++]!);
      if (!this.hasTasks || !this.mayStart()) return;
    }
  }

  private guard(task: () => void): void {
    try {
      task();
    } catch (error) {
      this.logger.error('a handler threw', { error });
    }
  }
}

export type VerbsNodeOptions = Omit<VerbsDeviceOptions, 'pump' | 'time' | 'onClosed'>;

export class VerbsNode implements HostNode {
  readonly clock = monotonicClock;
  readonly random = new SystemRandom();
  readonly driver: VerbsDriver;
  readonly device: VerbsDevice;
  readonly processHold: ProcessHoldCounter;

  /** @throws SpiError as VerbsDevice */
  constructor(options: VerbsNodeOptions) {
    const logger: Logger = options.logger;
    this.driver = new VerbsDriver(this.clock, logger);
    const pump = (handler: () => void): void => this.driver.defer(handler);
    const time = { clock: this.clock, timers: this.driver.timers };
    const onClosed = (): void => this.driver.close();
    this.device = new VerbsDevice({ ...options, pump, time, onClosed });
    this.processHold = new ProcessHoldCounter((alive) => {
      this.driver.setProcessHold(alive);
      this.device.setProcessHold(alive);
    });
  }

  get timers(): Timers {
    return this.driver.timers;
  }

  get scheduler(): Scheduler {
    return this.driver;
  }
}
