/**
 * The receive buffer: the bytes that the peer has written, those that were read, and the halves and
 * credits to return to the peer.
 */
import { next16, RsocketProtocolError } from '../wire/index.js';

const HALVES = 2;

export class ReceiveWindow {
  /** Lengths of messages that were not read completely, oldest first: a ring. */
  private readonly lengths: Uint32Array;
  private head = 0;
  private count = 0;
  /** Bytes of the oldest message that were read. */
  private readOfHead = 0;
  /** Unread bytes, and their offset in the buffer. */
  private unreadBytes = 0;
  private readAt = 0;
  /**
   * Bytes that the peer may still write: in its current half, and in halves that it was granted.
   */
  private grantedBytes: number;
  /** Bytes to grant to the peer: they were read, or never granted. */
  private freeBytes: number;
  /** The half to grant next. */
  private nextHalf = 1;
  /** Messages read completely, and IOMAP messages, modulo 2^16. */
  private consumed = 0;
  /** Messages to be consumed until credits are granted without a half. */
  private untilCredits: number;
  /** Messages that the peer may still send. */
  private creditsOut: number;

  /**
   * @param halfBytes of each half of the buffer
   * @param credits messages that may wait here: 1 to 65535
   */
  constructor(
    readonly halfBytes: number,
    readonly credits: number,
  ) {
    this.lengths = new Uint32Array(credits);
    this.grantedBytes = halfBytes;
    this.freeBytes = halfBytes;
    this.creditsOut = credits;
    this.untilCredits = Math.max(1, credits >> 1);
  }

  /** Number of unread bytes. */
  get unread(): number {
    return this.unreadBytes;
  }

  /** Offset of the first unread byte in the buffer. */
  get readOffset(): number {
    return this.readAt;
  }

  /** Unread bytes that are contiguous. */
  get readable(): number {
    return Math.min(this.unreadBytes, HALVES * this.halfBytes - this.readAt);
  }

  /** @throws RsocketProtocolError if the peer has no credit, or no room */
  receiveData(bytes: number): void {
    this.useCredit();
    const { halfBytes } = this;
    const room = Math.min(this.grantedBytes, halfBytes - this.writeOffset);
    if (bytes === 0 || bytes > room) {
      throw new RsocketProtocolError('data bytes', bytes, room === 0 ? 'none' : `1 to ${room}`);
    }
    this.grantedBytes -= bytes;
    this.unreadBytes += bytes;
    this.lengths[(this.head + this.count) % this.credits] = bytes;
    this.count++;
  }

  /** Handles an IOMAP message. Its credit is returned immediately, because nothing reads it. */
  receiveIomap(): void {
    this.useCredit();
    this.consume();
  }

  /** Consumes the first bytes, at most `readable`. */
  read(bytes: number): void {
    this.unreadBytes -= bytes;
    this.freeBytes += bytes;
    this.readAt = (this.readAt + bytes) % (HALVES * this.halfBytes);
    this.readOfHead += bytes;
    while (this.count > 0 && this.readOfHead >= (this.lengths[this.head] as number)) {
      this.readOfHead -= this.lengths[this.head] as number;
      this.head = (this.head + 1) % this.credits;
      this.count--;
      this.consume();
    }
  }

  /** The update that is due to the peer: a half and credits, or credits alone. */
  get due(): 'half' | 'credits' | undefined {
    if (this.freeBytes >= this.halfBytes) return 'half';
    return this.untilCredits <= 0 ? 'credits' : undefined;
  }

  /** Grants a half. @returns its offset in the buffer */
  giveHalf(): number {
    const { halfBytes, nextHalf } = this;
    this.freeBytes -= halfBytes;
    this.grantedBytes += halfBytes;
    this.nextHalf = (nextHalf + 1) % HALVES;
    return nextHalf * halfBytes;
  }

  /** Grants credits. @returns the limit of sequence numbers for the peer */
  giveCredits(): number {
    this.creditsOut = this.credits - this.count;
    this.untilCredits = Math.max(1, this.credits >> 1);
    return next16(this.consumed, this.credits);
  }

  /** Position within the half that the peer fills. */
  private get writeOffset(): number {
    return (this.readAt + this.unreadBytes) % this.halfBytes;
  }

  private useCredit(): void {
    if (this.creditsOut === 0) {
      throw new RsocketProtocolError('messages', 'one more', `${this.credits} that wait`);
    }
    this.creditsOut--;
  }

  private consume(): void {
    this.consumed = next16(this.consumed, 1);
    this.untilCredits--;
  }
}
