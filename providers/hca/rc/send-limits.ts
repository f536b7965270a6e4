/** Limits of an RC requester: bytes in flight, and messages that the responder has receives for. */
import { LOCAL_MTU_BYTES } from '../../../core/spi/index.js';
import { LOCAL } from '../queue-pair/queue-pair-memory.js';
import { PSN_MASK, psnAdd, psnDiff, psnNext } from '../wire/psn.js';
import type { RcQueuePair } from './queue-pair.js';
import { NO_CREDITS, creditsOf } from '../wire/aeth-syndrome.js';

/** The most that a queue pair of ours ever has outstanding. */
export const MOST_BYTES = 4 << 20;
/**
 * A packet from this size on requests an ACK, whether its message is awaited or not: otherwise the
 * bytes would be used up by messages that do not.
 */
const HEAVY_BYTES = MOST_BYTES / 32;

/** True if packets of the path are as long as messages. */
export function countsBytes(mtuBytes: number): boolean {
  return mtuBytes > LOCAL_MTU_BYTES;
}

/** @param lengthBytes of a message of so many packets */
export function isHeavy(mtuBytes: number, packets: number, lengthBytes: number): boolean {
  return countsBytes(mtuBytes) && (packets > 1 || lengthBytes >= HEAVY_BYTES);
}

/**
 * Limits the bytes that an RC requester has in flight if packets are as long as messages. The
 * congestion window counts packets, which says nothing about bytes there.
 */
export class BytesInFlight {
  /** Bytes of all requests before the one being sent, and of those that have completed. */
  private begun = 0;
  private ended = 0;
  /** The oldest request that is not in `ended`. */
  private oldest = 0;

  constructor(private readonly qp: RcQueuePair) {}

  /** Starts with nothing sent. */
  begin(): void {
    this.begun = this.ended = 0;
    this.oldest = this.qp.oldest;
  }

  /** A request has been sent to its end. */
  passed(index: number): void {
    this.begun += this.bytesOf(index);
  }

  /** It is to be sent again. */
  returnedTo(index: number): void {
    this.begun -= this.bytesOf(index);
  }

  /** Requests have completed. */
  settle(): void {
    for (; this.oldest !== this.qp.oldest; this.oldest = (this.oldest + 1) >>> 0) {
      this.ended += this.bytesOf(this.oldest);
    }
  }

  /** Sending starts again from the oldest request. */
  goBack(): void {
    this.settle();
    this.begun = this.ended;
  }

  /**
   * True if no more bytes may be sent for now.
   * @param packet the next packet, counted within the request being sent
   * @param una the oldest PSN that has not been acknowledged
   */
  full(packet: number, una: number): boolean {
    const { qp } = this;
    const { oldest, fetched, mtuBytes, memory, sendRing } = qp;
    const sent = this.begun + packet * mtuBytes;
    if (sent - this.ended < MOST_BYTES) return false;
    const first = oldest === fetched ? una : memory.firstPsn(oldest & sendRing.mask);
    return sent - this.ended - ((una - first) & PSN_MASK) * mtuBytes >= MOST_BYTES;
  }

  private bytesOf(index: number): number {
    const { memory, sendRing } = this.qp;
    const slot = index & sendRing.mask;
    return memory.local(slot) === LOCAL.NO ? memory.lengthBytes(slot) : 0;
  }
}

// End-to-end flow control of an RC requester (IBTA 9.7.7.2): messages that take a receive wait
// until the responder has one for them. Counts are modulo 2^24, as those of PSNs.

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
