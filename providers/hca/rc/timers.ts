/**
 * The timers of an RC requester, on one entry of the wheel; their deadlines are in the memory of
 * the queue pair. The ACK timer is IBTA's (9.7.6.1.3): each of its timeouts is a retry, and backs
 * off. Long before it, once the peer has been silent for longer than answers take, the requester
 * probes: it sends the oldest packet again (a tail-loss probe, RFC 8985 section 7), at doubling
 * intervals. A probe is no retry. So a lost tail costs a few round trips, and a peer that is busy
 * for a while is not given up. After an RNR NAK neither timer runs: the third one waits for the
 * peer to have a receive (IBTA 9.7.5.2.8).
 */
import { TimerEntry } from '../../../core/spi/index.js';
import { NO_DEADLINE, TIME } from '../queue-pair/queue-pair-memory.js';
import type { RcPace } from './pace.js';
import type { RcQueuePair } from './queue-pair.js';
import type { RcRequester } from './requester.js';

/** IBTA lets the ACK timer take 1 to 4 times its nominal length: we back off within that. */
const MAX_BACKOFF = 4;
/** Shorter waits for a receiver are kept to a fraction of a millisecond. */
const EXACT_BELOW_US = 1000;
/** Up to this many running timers of a device are few: see `pause`. */
const FEW_TIMERS = 64;

/** Its deadline in the wheel may be earlier than the true ones: see `restart`. */
export class RcTimers extends TimerEntry {
  private backoff = 1;
  private probeBackoff = 1;
  /** After an RNR NAK. */
  waitingForReceiver = false;

  constructor(
    private readonly qp: RcQueuePair,
    private readonly pace: RcPace,
    private readonly waiter: RcRequester,
  ) {
    super();
  }

  /** An acknowledgement is awaited. */
  get running(): boolean {
    return this.qp.memory.ackDeadlineUs !== NO_DEADLINE;
  }

  begin(): void {
    this.backoff = 1;
    this.probeBackoff = 1;
  }

  /**
   * Resets both waits to their first lengths, after an answer. The wait before a probe is reset
   * only once an answer has been timed (RFC 6298, 5.5 to 5.7). Otherwise, if answers take longer
   * than expected, a probe would precede each answer, and none could ever be timed.
   */
  onProgress(): void {
    this.backoff = 1;
    if (this.pace.timed) this.probeBackoff = 1;
  }

  /** Both waits for an answer begin. */
  restart(): void {
    const { hca, memory } = this.qp;
    const { ackTimeoutUs } = memory;
    if (ackTimeoutUs === Infinity) return;
    memory.ackDeadlineUs = hca.nowUs + ackTimeoutUs * this.backoff;
    this.restartProbe();
  }

  /**
   * Restarts the wait before a probe, after an ACK request; the ACK timer keeps running. The wheel
   * is touched only when the deadline moves forward: an expiry that is too early finds the true
   * deadline and keeps waiting.
   */
  restartProbe(): void {
    const { hca, memory } = this.qp;
    this.pace.awaitAnswer(hca, this.probeBackoff);
    const { doubles, firstDouble } = memory;
    const nextUs = Math.min(
      doubles[firstDouble + TIME.ackDeadlineUs]!,
      doubles[firstDouble + TIME.probeDeadlineUs]!,
    );
    if (!this.active || nextUs < this.deadlineUs) hca.timers.start(this, nextUs, this.pace.lossy);
  }

  /**
   * Stops waiting: no answer is expected. If few timers run, this one keeps running and finds that
   * out when it expires: most are needed again before. If many run, its connection would be out of
   * the caches by then.
   */
  pause(): void {
    const { hca, memory } = this.qp;
    if (hca.timers.size > FEW_TIMERS) hca.timers.stop(this);
    memory.ackDeadlineUs = NO_DEADLINE;
    memory.probeDeadlineUs = NO_DEADLINE;
  }

  /** Starts or extends the wait for a receive, to at least this long from now. */
  waitForReceiver(delayUs: number): void {
    const { hca, memory } = this.qp;
    const untilUs = hca.nowUs + delayUs;
    if (this.waitingForReceiver && untilUs <= memory.receiverDeadlineUs) return;
    this.waitingForReceiver = true;
    memory.receiverDeadlineUs = untilUs;
    const exact = delayUs < EXACT_BELOW_US;
    if (!this.active || untilUs < this.deadlineUs) hca.timers.start(this, untilUs, exact);
  }

  endReceiverWait(): void {
    this.waitingForReceiver = false;
    this.qp.memory.receiverDeadlineUs = NO_DEADLINE;
  }

  stop(): void {
    this.pause();
    this.endReceiverWait();
    this.qp.hca.timers.stop(this);
  }

  override expire(nowUs: number): void {
    const { waiter, qp } = this;
    const { ackDeadlineUs, probeDeadlineUs, receiverDeadlineUs } = qp.memory;
    const nextUs = Math.min(ackDeadlineUs, probeDeadlineUs, receiverDeadlineUs);
    if (nowUs < nextUs) {
      if (nextUs !== NO_DEADLINE) qp.hca.timers.start(this, nextUs, this.pace.lossy);
    } else if (this.waitingForReceiver) {
      this.endReceiverWait();
      qp.hca.scheduler.scheduleRequests(qp);
    } else if (!waiter.outstanding) this.pause();
    else if (waiter.requestAck()) this.restart();
    else if (nowUs >= ackDeadlineUs) {
      const waitedUs = qp.memory.ackTimeoutUs * this.backoff;
      this.backoff = Math.min(this.backoff * 2, MAX_BACKOFF);
      waiter.onAckTimeout(waitedUs);
    } else {
      waiter.sendProbe();
      this.probeBackoff *= 2;
      this.restartProbe();
    }
  }
}
