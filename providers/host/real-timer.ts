/**
 * The one real timer of a device: wakes the driver at the wheel's next deadline. Most deadlines are
 * bounds, and are rounded up to what timers of Node give. Exact ones turn with the event loop for
 * their last millisecond.
 */
import type { Clock } from '../../core/spi/index.js';
import { NextTurn } from './next-turn.js';

/** Timers of Node count whole milliseconds, from the time when the event loop turned last. */
const ROUNDING_MS = 1;
/** The longest a Node timeout can be (2^31 - 1 ms); a later deadline is looked at again then. */
const MAX_TIMEOUT_MS = 0x7fffffff;

export class RealTimer {
  private deadlineUs = Infinity;
  private exact = false;
  private timeout: NodeJS.Timeout | undefined;
  private timeoutDeadlineUs = Infinity;
  private readonly turn = new NextTurn(() => this.onWake());
  private processHold = false;

  /**
   * @param onDeadline called from the event loop, never from `arm`
   * @param onEarly called after a turn of the event loop in which no deadline had come
   */
  constructor(
    private readonly clock: Clock,
    private readonly onDeadline: () => void,
    private readonly onEarly: () => void = () => undefined,
  ) {}

  /**
   * Sets the deadline in microseconds of the clock; Infinity for none. Replaces an earlier one.
   * Arming the same or a later deadline costs nothing: a wake-up that comes too early re-arms.
   * @param exact it is met to a fraction of a millisecond; else up to 2 ms late
   */
  arm(deadlineUs: number, exact = false): void {
    const sooner = deadlineUs < this.timeoutDeadlineUs || (exact && !this.exact);
    this.deadlineUs = deadlineUs;
    this.exact = exact;
    if (deadlineUs === Infinity) this.stop();
    else if (!this.turn.isPending && sooner) this.schedule();
  }

  /** Sets whether a future deadline keeps the process alive. */
  setProcessHold(alive: boolean): void {
    this.processHold = alive;
    this.turn.setProcessHold(alive);
    if (alive) this.timeout?.ref();
    else this.timeout?.unref();
  }

  close(): void {
    this.arm(Infinity);
  }

  private schedule(): void {
    this.stop();
    const remainingMs = (this.deadlineUs - this.clock.now()) / 1000;
    if (remainingMs <= 0 || (this.exact && remainingMs < 1)) {
      this.turn.request();
      return;
    }
    const rounded = this.exact ? Math.floor(remainingMs) : Math.ceil(remainingMs) + ROUNDING_MS;
    this.timeoutDeadlineUs = this.deadlineUs;
    this.timeout = setTimeout(() => this.onWake(), Math.min(rounded, MAX_TIMEOUT_MS));
    if (!this.processHold) this.timeout.unref();
  }

  private onWake(): void {
    this.stop();
    if (this.deadlineUs === Infinity) return;
    if (this.clock.now() < this.deadlineUs) {
      this.onEarly();
      this.schedule();
      return;
    }
    this.deadlineUs = Infinity;
    this.onDeadline();
  }

  private stop(): void {
    if (this.timeout) clearTimeout(this.timeout);
    this.turn.cancel();
    this.timeout = undefined;
    this.timeoutDeadlineUs = Infinity;
  }
}
