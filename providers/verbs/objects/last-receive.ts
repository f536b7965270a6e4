/**
 * Reports that a queue pair on a shared receive queue takes no more receives. Hardware reports it
 * in ERR (IBTA 11.6.3, last WQE reached); rdma_rxe of Linux 6.1 does not. Without such a report, it
 * is reported after a time in which any device has flushed what it had begun to fill.
 */
import { type Clock, Timer, type Timers } from '../../../core/spi/index.js';

/** Devices flush within a millisecond; disconnections are reported this much later. */
const GRACE_US = 50_000;

/** Clock and timers of a device. */
export interface DeviceTime {
  readonly clock: Clock;
  readonly timers: Timers;
}

export class LastReceive {
  private readonly timer: Timer;
  private told = false;

  /** @param tell says it in place of the device */
  constructor(
    private readonly time: DeviceTime,
    tell: () => void,
  ) {
    this.timer = new Timer(() => {
      if (this.told) return;
      this.told = true;
      tell();
    });
  }

  /** The queue pair is in ERR. */
  expect(): void {
    if (this.told || this.timer.active) return;
    this.time.timers.start(this.timer, this.time.clock.now() + GRACE_US);
  }

  /** The device has said it; true when it had not been said before. */
  arrived(): boolean {
    const isFirst = !this.told;
    this.told = true;
    this.time.timers.stop(this.timer);
    return isFirst;
  }

  /** Another life begins (RESET), or none. */
  reset(): void {
    this.told = false;
    this.time.timers.stop(this.timer);
  }
}
