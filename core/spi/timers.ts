/**
 * Timers as data: starting and stopping one is O(1) and allocates nothing. One wheel serves the
 * software HCA, the modules and core of a device; the driver asks it for the next deadline and arms
 * a single real timer.
 */

/** An embeddable timer. Make one per purpose and start it again and again. */
export class Timer {
  /** Absolute expiry in microseconds of the device's clock; meaningful while `active`. */
  deadlineUs = 0;
  /** Links and place in the wheel; they belong to the wheel that the timer is started on. */
  next: Timer | null = null;
  prev: Timer | null = null;
  slot = -1;

  /** @param onExpire called by the driver's pump, never from `start` */
  constructor(readonly onExpire: (nowUs: number) => void) {}

  get active(): boolean {
    return this.slot >= 0;
  }
}

/** What modules and core see of the wheel. */
export interface Timers {
  /** Starts (or restarts) a timer at an absolute time; a past time expires at the next pump. */
  start(timer: Timer, deadlineUs: number): void;
  /** Stops a timer; stopping a stopped one does nothing. */
  stop(timer: Timer): void;
}
