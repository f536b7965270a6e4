/** The wait for the peer to have a receive, after an RNR NAK (IBTA 9.7.5.2.8). */
import { Timer } from '../../../core/spi/index.js';
import type { SoftQueuePair } from '../queue-pair/queue-pair.js';

export class RcReceiverWait {
  underWay = false;
  private readonly timer: Timer;

  constructor(private readonly qp: SoftQueuePair) {
    this.timer = new Timer(() => {
      this.underWay = false;
      qp.hca.turns.scheduleRequests(qp);
    });
  }

  /** Begins, or goes on: for so long from now at least. */
  extend(delayUs: number): void {
    const { timers, nowUs } = this.qp.hca;
    const untilUs = nowUs + delayUs;
    if (this.underWay && untilUs <= this.timer.deadlineUs) return;
    this.underWay = true;
    timers.start(this.timer, untilUs);
  }

  end(): void {
    this.qp.hca.timers.stop(this.timer);
    this.underWay = false;
  }
}
