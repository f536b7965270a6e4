/** The wait for the peer to have a receive, after an RNR NAK (IBTA 9.7.5.2.8). */
import { Timer } from '../../core/spi/index.js';
import type { Timers } from '../../core/spi/index.js';

export class RcReceiverWait {
  underWay = false;
  private readonly timer: Timer;

  /** @param onOver the time has passed */
  constructor(
    private readonly timers: Timers,
    onOver: () => void,
  ) {
    this.timer = new Timer(() => {
      this.underWay = false;
      onOver();
    });
  }

  /** Begins, or goes on: until `untilUs` at least. */
  extend(untilUs: number): void {
    if (this.underWay && untilUs <= this.timer.deadlineUs) return;
    this.underWay = true;
    this.timers.start(this.timer, untilUs);
  }

  end(): void {
    this.timers.stop(this.timer);
    this.underWay = false;
  }
}
