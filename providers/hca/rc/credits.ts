/**
 * End-to-end flow control of an RC requester (IBTA 9.7.7.2): messages that take a receive wait
 * until the responder has one for them. Counts are modulo 2^24, as those of PSNs.
 */
import { NO_CREDITS, creditsOf } from '../wire/aeth-syndrome.js';
import { psnAdd, psnDiff, psnNext } from '../wire/psn.js';

/** Before the first ACK, one message may go (IBTA 9.7.7.2). */
const FIRST = 1;

export class RcCredits {
  /** False while the responder is of another make, or has receives that others may take. */
  private limited = false;
  /** Messages that take a receive: begun, and acknowledged. */
  private begun = 0;
  private acknowledged = 0;
  /** The number of messages that the responder has had receives for. */
  private limit = FIRST;
  /** A message may go without a credit: the responder has been waited for. */
  private waited = false;

  /** @param limited the peer keeps end-to-end flow control */
  begin(limited: boolean): void {
    this.limited = limited;
    this.begun = this.acknowledged = 0;
    this.limit = FIRST;
    this.waited = false;
  }

  /** True if a message that takes a receive may go. */
  get open(): boolean {
    return !this.limited || this.waited || psnDiff(this.limit, this.begun) > 0;
  }

  /** True if the last credit goes with the next message: its ACK must be requested. */
  get isLast(): boolean {
    return this.limited && psnDiff(this.limit, this.begun) <= 1;
  }

  onBegun(): void {
    this.begun = psnNext(this.begun);
    this.waited = false;
  }

  onAcknowledged(): void {
    this.acknowledged = psnNext(this.acknowledged);
  }

  /**
   * The requester goes back.
   * @param begun messages to be acknowledged that are not begun anew: 0 or 1
   */
  resume(begun: number): void {
    this.begun = psnAdd(this.acknowledged, begun);
  }

  /** The last message is to begin anew. */
  undo(): void {
    this.begun = psnAdd(this.begun, -1);
  }

  /** The responder has been silent for long, or says itself how long to wait. */
  onWait(): void {
    this.limit = this.acknowledged;
    this.waited = true;
  }

  /**
   * An ACK whose PSN ends a message, and all before it have been acknowledged.
   * @param code of the credits
   * @returns true if more messages may go
   */
  grant(code: number): boolean {
    if (!this.limited) return false;
    if (code === NO_CREDITS) {
      this.limited = false;
      return true;
    }
    const limit = psnAdd(this.acknowledged, creditsOf(code));
    if (psnDiff(limit, this.limit) <= 0) return false;
    this.limit = limit;
    this.waited = false;
    return true;
  }
}
