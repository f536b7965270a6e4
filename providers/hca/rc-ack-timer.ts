/**
 * The two waits of an RC requester on one timer. The ACK timer is IBTA's (9.7.6.1.3): each of its
 * timeouts is a retry, and backs off. Long before it, once nothing has come back for longer than
 * answers take, the requester asks: it sends the oldest packet again, at doubling intervals, which
 * is no retry. So a lost tail costs a few round trips, and a peer that is busy for a while is not
 * given up.
 */
import { Timer } from '../../core/spi/index.js';
import type { RcPace } from './rc-pace.js';
import type { RcQueuePair } from './rc-queue-pair.js';

/** IBTA lets the ACK timer take 1 to 4 times its nominal length: we back off within that. */
const MAX_BACKOFF = 4;

/** Who waits. */
export interface AckWaiter {
  readonly outstanding: boolean;
  /** Nothing has come back for `waitedUs`. */
  onAckTimeout(waitedUs: number): void;
  ask(): void;
}

export class RcAckTimer {
  private backoff = 1;
  private ackDeadlineUs = Infinity;
  private askBackoff = 1;
  private askDeadlineUs = Infinity;
  private readonly timer = new Timer((nowUs) => this.onExpire(nowUs));

  constructor(
    private readonly qp: RcQueuePair,
    private readonly pace: RcPace,
    private readonly waiter: AckWaiter,
  ) {}

  get running(): boolean {
    return this.ackDeadlineUs !== Infinity;
  }

  begin(): void {
    this.backoff = 1;
    this.askBackoff = 1;
  }

  /**
   * Something has come back: both waits have their first lengths again. That before asking has it
   * only once an answer has been timed (RFC 6298, 5.5 to 5.7): if answers take longer than thought,
   * each would be asked for before it comes, and none could ever be timed.
   */
  onProgress(): void {
    this.backoff = 1;
    if (this.pace.timed) this.askBackoff = 1;
  }

  /**
   * Both waits begin. The wheel is touched only when the deadline moves forward: an expiry that
   * comes too early finds the true deadline and waits on.
   */
  restart(): void {
    const { hca, ackTimeoutUs } = this.qp;
    if (ackTimeoutUs === Infinity) return;
    this.ackDeadlineUs = hca.nowUs + ackTimeoutUs * this.backoff;
    this.restartAsking();
  }

  /** What asks has been sent: the wait before asking begins again, the ACK timer goes on. */
  restartAsking(): void {
    const { hca } = this.qp;
    this.askDeadlineUs = hca.nowUs + this.pace.timeoutUs * this.askBackoff;
    const { deadlineUs } = this;
    if (!this.timer.active || deadlineUs < this.timer.deadlineUs) {
      hca.timers.start(this.timer, deadlineUs);
    }
  }

  /** Nothing is awaited; an expiry that is still to come finds that out. */
  pause(): void {
    this.ackDeadlineUs = Infinity;
    this.askDeadlineUs = Infinity;
  }

  stop(): void {
    this.pause();
    this.qp.hca.timers.stop(this.timer);
  }

  private get deadlineUs(): number {
    return Math.min(this.ackDeadlineUs, this.askDeadlineUs);
  }

  private onExpire(nowUs: number): void {
    const { waiter, qp } = this;
    if (!waiter.outstanding || !this.running) this.pause();
    else if (nowUs >= this.ackDeadlineUs) {
      const waitedUs = qp.ackTimeoutUs * this.backoff;
      this.backoff = Math.min(this.backoff * 2, MAX_BACKOFF);
      waiter.onAckTimeout(waitedUs);
    } else if (nowUs >= this.askDeadlineUs) {
      waiter.ask();
      this.askBackoff *= 2;
      this.restartAsking();
    } else qp.hca.timers.start(this.timer, this.deadlineUs);
  }
}
