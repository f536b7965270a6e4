/**
 * The two waits of an RC requester on one timer. The ACK timer is IBTA's (9.7.6.1.3): each of its
 * timeouts is a retry, and backs off. Long before it, once nothing has come back for longer than
 * answers take, the requester asks: it sends the oldest packet again, at doubling intervals, which
 * is no retry. So a lost tail costs a few round trips, and a peer that is busy for a while is not
 * given up.
 */
import { TimerEntry } from '../../core/spi/index.js';
import type { RcPace } from './rc-pace.js';
import type { RcQueuePair } from './rc-queue-pair.js';
import { NO_DEADLINE } from './rc-times.js';
import type { RcTimes } from './rc-times.js';

/** IBTA lets the ACK timer take 1 to 4 times its nominal length: we back off within that. */
const MAX_BACKOFF = 4;

/** Who waits. */
export interface AckWaiter {
  readonly outstanding: boolean;
  /** Nothing has come back for `waitedUs`. */
  onAckTimeout(waitedUs: number): void;
  ask(): void;
}

/** Its deadline in the wheel may be earlier than the true ones: see `restart`. */
export class RcAckTimer extends TimerEntry {
  private backoff = 1;
  private askBackoff = 1;

  constructor(
    private readonly qp: RcQueuePair,
    private readonly times: RcTimes,
    private readonly pace: RcPace,
    private readonly waiter: AckWaiter,
  ) {
    super();
  }

  get running(): boolean {
    return this.times.ackDeadlineUs !== NO_DEADLINE;
  }

  /** Something has come back: both waits have their first lengths again. */
  resetBackoff(): void {
    this.backoff = 1;
    this.askBackoff = 1;
  }

  /**
   * Both waits begin. The wheel is touched only when the deadline moves forward: an expiry that
   * comes too early finds the true deadline and waits on.
   */
  restart(): void {
    const { hca, ackTimeoutUs } = this.qp;
    if (ackTimeoutUs === Infinity) return;
    this.times.ackDeadlineUs = hca.nowUs + ackTimeoutUs * this.backoff;
    this.restartAsking();
  }

  /** What asks has been sent: the wait before asking begins again, the ACK timer goes on. */
  restartAsking(): void {
    const { hca } = this.qp;
    this.times.askDeadlineUs = hca.nowUs + this.pace.timeoutUs * this.askBackoff;
    const { nextUs } = this;
    if (!this.active || nextUs < this.deadlineUs) hca.timers.start(this, nextUs);
  }

  /** Nothing is awaited; an expiry that is still to come finds that out. */
  pause(): void {
    this.times.ackDeadlineUs = NO_DEADLINE;
    this.times.askDeadlineUs = NO_DEADLINE;
  }

  stop(): void {
    this.pause();
    this.qp.hca.timers.stop(this);
  }

  private get nextUs(): number {
    return Math.min(this.times.ackDeadlineUs, this.times.askDeadlineUs);
  }

  override expire(nowUs: number): void {
    const { waiter, qp } = this;
    if (!waiter.outstanding || !this.running) this.pause();
    else if (nowUs >= this.times.ackDeadlineUs) {
      const waitedUs = qp.ackTimeoutUs * this.backoff;
      this.backoff = Math.min(this.backoff * 2, MAX_BACKOFF);
      waiter.onAckTimeout(waitedUs);
    } else if (nowUs >= this.times.askDeadlineUs) {
      waiter.ask();
      this.askBackoff *= 2;
      this.restartAsking();
    } else qp.hca.timers.start(this, this.nextUs);
  }
}
