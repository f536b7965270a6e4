/**
 * The one real timer of a device: wakes the driver at the wheel's next deadline. Deadlines further
 * off than a millisecond use a timeout, which Node rounds to milliseconds; nearer ones turn with
 * the event loop until they are due.
 */
import type { Clock } from '../../core/spi/index.js';
import { NextTurn } from './next-turn.js';

/** Below this a timeout would overshoot by more than what is left. */
const IMMEDIATE_BELOW_US = 1000;
/** The longest a Node timeout can be (2^31 - 1 ms); a later deadline is looked at again then. */
const MAX_TIMEOUT_MS = 0x7fffffff;

export class RealTimer {
  private deadlineUs = Infinity;
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
   */
  arm(deadlineUs: number): void {
    this.deadlineUs = deadlineUs;
    if (deadlineUs === Infinity) this.stop();
    else if (!this.turn.isPending && deadlineUs < this.timeoutDeadlineUs) this.schedule();
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
    const remainingUs = this.deadlineUs - this.clock.now();
    if (remainingUs < IMMEDIATE_BELOW_US) {
      this.turn.request();
      return;
    }
    const timeoutMs = Math.min(Math.floor(remainingUs / 1000), MAX_TIMEOUT_MS);
    this.timeoutDeadlineUs = this.deadlineUs;
    this.timeout = setTimeout(() => this.onWake(), timeoutMs);
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
