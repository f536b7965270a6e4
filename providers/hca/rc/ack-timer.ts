/**
 * The two waits of an RC requester on one timer. The ACK timer is IBTA's (9.7.6.1.3): each of its
 * timeouts is a retry, and backs off. Long before it, once nothing has come back for longer than
 * answers take, the requester probes: it sends the oldest packet again (a tail-loss probe, RFC 8985
 * section 7), at doubling intervals, which is no retry. So a lost tail costs a few round trips, and
 * a peer that is busy for a while is not given up.
 */
import { TimerEntry } from '../../../core/spi/index.js';
import type { RcPace } from './pace.js';
import type { Engine } from '../queue-pair/engine.js';
import { TIME } from '../queue-pair/queue-pair-memory.js';
import { NO_DEADLINE } from './memory.js';
import type { RcMemory } from './memory.js';

/** IBTA lets the ACK timer take 1 to 4 times its nominal length: we back off within that. */
const MAX_BACKOFF = 4;
/** So many running timers of a device are few: see `pause`. */
const FEW_TIMERS = 64;

/** The queue pair, as the timer sees it. */
export interface TimedQueuePair {
  readonly hca: Engine;
  readonly memory: RcMemory;
}

/** What waits. */
export interface AckWaiter {
  readonly outstanding: boolean;
  /** Requests an ACK where no packet on its way does: true then, and nothing is amiss. */
  requestAck(): boolean;
  /** Nothing has come back for `waitedUs`. */
  onAckTimeout(waitedUs: number): void;
  /** A tail-loss probe: the oldest packet once more, which is no retry. */
  sendProbe(): void;
}

/** Its deadline in the wheel may be earlier than the true ones: see `restart`. */
export class RcAckTimer extends TimerEntry {
  private backoff = 1;
  private probeBackoff = 1;

  constructor(
    private readonly qp: TimedQueuePair,
    private readonly pace: RcPace,
    private readonly waiter: AckWaiter,
  ) {
    super();
  }

  get running(): boolean {
    return this.qp.memory.ackDeadlineUs !== NO_DEADLINE;
  }

  begin(): void {
    this.backoff = 1;
    this.probeBackoff = 1;
  }

  /**
   * Something has come back: both waits have their first lengths again. That before a probe has it
   * only once an answer has been timed (RFC 6298, 5.5 to 5.7): if answers take longer than thought,
   * each would be probed for before it comes, and none could ever be timed.
   */
  onProgress(): void {
    this.backoff = 1;
    if (this.pace.timed) this.probeBackoff = 1;
  }

  /**
   * Both waits begin. The wheel is touched only when the deadline moves forward: an expiry that
   * comes too early finds the true deadline and waits on.
   */
  restart(): void {
    const { hca, memory } = this.qp;
    const { ackTimeoutUs } = memory;
    if (ackTimeoutUs === Infinity) return;
    memory.ackDeadlineUs = hca.nowUs + ackTimeoutUs * this.backoff;
    this.restartAsking();
  }

  /** An ACK request has been sent: the wait before a probe begins again, the ACK timer goes on. */
  restartAsking(): void {
    const { hca, memory } = this.qp;
    this.pace.awaitAnswer(hca, this.probeBackoff);
    const { doubles, firstTime } = memory;
    const nextUs = Math.min(
      doubles[firstTime + TIME.ACK_DEADLINE]!,
      doubles[firstTime + TIME.PROBE_DEADLINE]!,
    );
    if (!this.active || nextUs < this.deadlineUs) hca.timers.start(this, nextUs);
  }

  /**
   * Nothing is awaited. Among few timers one goes on, and finds that out when it expires: most are
   * wanted again before. Among many it would find its connection gone from the caches by then.
   */
  pause(): void {
    const { timers } = this.qp.hca;
    if (timers.size > FEW_TIMERS) timers.stop(this);
    this.qp.memory.ackDeadlineUs = NO_DEADLINE;
    this.qp.memory.probeDeadlineUs = NO_DEADLINE;
  }

  stop(): void {
    this.pause();
    this.qp.hca.timers.stop(this);
  }

  private get nextUs(): number {
    return Math.min(this.qp.memory.ackDeadlineUs, this.qp.memory.probeDeadlineUs);
  }

  override expire(nowUs: number): void {
    const { waiter, qp } = this;
    if (!waiter.outstanding || !this.running) this.pause();
    else if (nowUs < this.nextUs) qp.hca.timers.start(this, this.nextUs);
    else if (waiter.requestAck()) this.restart();
    else if (nowUs >= this.qp.memory.ackDeadlineUs) {
      const waitedUs = qp.memory.ackTimeoutUs * this.backoff;
      this.backoff = Math.min(this.backoff * 2, MAX_BACKOFF);
      waiter.onAckTimeout(waitedUs);
    } else {
      waiter.sendProbe();
      this.probeBackoff *= 2;
      this.restartAsking();
    }
  }
}
