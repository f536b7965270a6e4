/**
 * Whether a peer reads bulk from our memory, one request after the other. The next one comes as
 * soon as an answer has been taken in: sooner than the system wakes a process that sleeps, which
 * takes time of the peer's, too, and it is the peer that has more to do.
 */
import { LIMITS } from './limits.js';

/** To send less takes less time than to be woken. */
const BULK_BYTES = LIMITS.BULK_BYTES.value;
const GAP_US = LIMITS.BULK_GAP_US.value;

export class ReadStreams {
  private lastUs = -Infinity;
  private nextUntilUs = -Infinity;

  /** A peer reads `bytes` of ours. */
  onRead(bytes: number, nowUs: number): void {
    // Those of one burst are parts of one READ.
    if (bytes < BULK_BYTES || nowUs === this.lastUs) return;
    if (nowUs - this.lastUs < GAP_US) this.nextUntilUs = nowUs + GAP_US;
    this.lastUs = nowUs;
  }

  /** When the next request will have come, in microseconds; 0 if none is expected. */
  nextUs(nowUs: number): number {
    return nowUs < this.nextUntilUs ? this.nextUntilUs : 0;
  }
}
