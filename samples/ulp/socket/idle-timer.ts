/** How long nothing may happen on a socket: `setTimeout` of node:net. */

/** A timer that begins anew with every byte, and does not keep the process alive. */
export class IdleTimer {
  private timer: NodeJS.Timeout | undefined = undefined;
  private seenBytes = 0;

  /**
   * @param takenBytes of writes; where they have moved on, the socket was not idle
   * @param onIdle the time is over; the timer has begun anew
   */
  constructor(
    private readonly takenBytes: () => number,
    private readonly onIdle: () => void,
  ) {}

  /** @param timeoutMs 0 for never */
  start(timeoutMs: number): void {
    clearTimeout(this.timer);
    this.seenBytes = this.takenBytes();
    this.timer = timeoutMs === 0 ? undefined : setTimeout(() => this.look(), timeoutMs).unref();
  }

  /** Something has happened. */
  touch(): void {
    this.timer?.refresh();
  }

  stop(): void {
    clearTimeout(this.timer);
    this.timer = undefined;
  }

  private look(): void {
    this.timer?.refresh();
    const takenBytes = this.takenBytes();
    const hasMoved = takenBytes !== this.seenBytes;
    this.seenBytes = takenBytes;
    if (!hasMoved) this.onIdle();
  }
}
