/**
 * Timers as data: starting and stopping one is O(1) and allocates nothing. One wheel serves the
 * software HCA, the modules and core of a device; the driver asks it for the next deadline and arms
 * a single real timer.
 */

/** The state of one timer: a base class for objects that are timers themselves. */
export abstract class TimerEntry {
  /** Absolute expiry in microseconds of the device's clock; meaningful while `active`. */
  deadlineUs = 0;
  /** Links and place in the wheel; they belong to the wheel that the timer is started on. */
  next: TimerEntry | null = null;
  prev: TimerEntry | null = null;
  slot = -1;

  get active(): boolean {
    return this.slot >= 0;
  }

  /** Called by the driver's pump, never from `start`. */
  abstract expire(nowUs: number): void;
}

/** An embeddable timer. Create one per purpose and restart it as needed. */
export class Timer extends TimerEntry {
  /** @param onExpire see `expire` */
  constructor(private readonly onExpire: (nowUs: number) => void) {
    super();
  }

  override expire(nowUs: number): void {
    this.onExpire(nowUs);
  }
}

/** The part of the wheel that modules and core use. */
export interface Timers {
  /**
   * Starts (or restarts) a timer at an absolute time; a past time expires at the next pump.
   * @param exact it expires on time to a fraction of a millisecond, which costs a turn of the event
   * loop after the other; else up to 2 ms late
   */
  start(timer: TimerEntry, deadlineUs: number, exact?: boolean): void;
  /** Stops a timer; stopping a stopped one does nothing. */
  stop(timer: TimerEntry): void;
}
