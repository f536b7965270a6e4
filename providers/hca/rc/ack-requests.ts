/**
 * Decides which packets of an RC requester request an acknowledgement (AckReq, IBTA 9.7.5.1.5). The
 * last packet of a message does if its completion is awaited. Of messages in quick succession that
 * are not awaited, only some do: each acknowledgement costs the peer a packet, and one covers all
 * before it.
 */
import type { CongestionWindow } from './congestion-window.js';
import { type ConnectionMemory, TIME } from '../queue-pair/queue-pair-memory.js';
import type { HcaClock } from './pace.js';
import { psnDiff } from '../wire/psn.js';

/** More packets than any window: the next one requests an ACK. */
const OVERDUE = 1 << 20;
/** Messages in a row that may go without. */
const MAX_WITHOUT = 16;
/**
 * A message that comes so long after the one before may be the last for a while, and requests one.
 * Sixteen of these make less than the requester waits before it probes.
 */
const CLOSE_US = 50;

export class RcAckRequests {
  /** Packets since the last request. */
  private since = OVERDUE;
  /** One after the last packet with a request. */
  private requestedEnd = 0;

  constructor(
    private readonly window: CongestionWindow,
    private readonly times: ConnectionMemory,
  ) {}

  /**
   * Restarts, with a connection or with the oldest unacknowledged packet. It requests an ACK at
   * once: that shows the round trip time, or that the missing packet has arrived.
   */
  begin(): void {
    this.since = OVERDUE;
  }

  /** True if the packet built last requests an ACK. */
  get requested(): boolean {
    return this.since === 0;
  }

  /** Notes that the packet before `psn` requested an ACK. */
  noteRequested(psn: number): void {
    this.requestedEnd = psn;
  }

  /** True if any packet from `una` on requests an ACK. */
  areRequested(una: number): boolean {
    return psnDiff(this.requestedEnd, una) > 0;
  }

  /** A request whose answer is more than an acknowledgement. */
  answered(): void {
    this.since = 0;
  }

  /**
   * Decides whether the next packet of a SEND or WRITE requests an ACK.
   * @param last it is the last packet of its message
   * @param awaited the consumer waits for the message to complete
   */
  setsAckReq(last: boolean, awaited: boolean, clock: HcaClock): boolean {
    this.since += 1;
    const requests =
      (last && this.lastRequests(awaited, clock)) || this.since >= this.window.ackEvery;
    if (requests) this.since = 0;
    return requests;
  }

  private lastRequests(awaited: boolean, { nowUs }: HcaClock): boolean {
    const { doubles, firstDouble } = this.times;
    const alone = nowUs - doubles[firstDouble + TIME.sentAtUs]! >= CLOSE_US;
    doubles[firstDouble + TIME.sentAtUs] = nowUs;
    return awaited || alone || this.since >= MAX_WITHOUT || this.window.lossy;
  }
}
