/**
 * Limits the bytes that an RC requester has in flight if packets are as long as messages. The
 * congestion window counts packets, which says nothing about bytes there.
 */
import { LOCAL_MTU_BYTES } from '../../../core/spi/index.js';
import { LOCAL } from '../queue-pair/queue-pair-memory.js';
import { PSN_MASK } from '../wire/psn.js';
import type { RcQueuePair } from './queue-pair.js';

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
