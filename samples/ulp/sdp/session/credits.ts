/**
 * Credits: every message takes one of the peer's receives. `bufs` and `mseqAck` of each message
 * state how many receives were posted when that many of our messages had arrived (IBTA annex A4;
 * CA4-82 is the last credit).
 */
import type { Sequence } from '../wire/index.js';
import { expect } from './protocol-error.js';

/** Classes of messages, by the credits they need. */
export type CreditClass = 'data' | 'control' | 'update';

/**
 * Credits needed for each class. The last credit is only for a Data message of no bytes that gives
 * the peer credits: so two sides never wait for each other.
 */
export const CREDITS_NEEDED: Readonly<Record<CreditClass, number>> = {
  data: 3,
  control: 2,
  update: 1,
};
/**
 * An update is due when the posted receives exceed the number that the peer knows of by this
 * factor.
 */
const UPDATE_RATIO = 1.5;

const since = (later: number, earlier: number): number => (later - earlier) >>> 0;

export class Credits {
  /** Sequence number of the next message. */
  private next = 1;
  private peerBufs: number;
  private peerAck = 0;
  private received = 0;
  private postedCount: number;
  private toldBufs: number;
  private toldAck = 0;

  /**
   * @param posted receives of this side, as in its Hello
   * @param peerBufs receives of the peer, as in its Hello
   */
  constructor(posted: number, peerBufs: number) {
    this.postedCount = posted;
    this.toldBufs = posted;
    this.peerBufs = peerBufs;
  }

  /** Messages that may be sent to the peer. */
  get available(): number {
    return this.peerBufs - since(this.next, this.peerAck) + 1;
  }

  /** Receives that are posted here. */
  get posted(): number {
    return this.postedCount;
  }

  /** Messages of this side that the peer has not acknowledged. */
  get unacknowledged(): number {
    return since(this.next, this.peerAck) - 1;
  }

  /** Sequence number of the last message that was sent. */
  get lastSent(): number {
    return (this.next - 1) >>> 0;
  }

  /** True if `ack`, sent by the peer, acknowledges the message `mseq`. */
  isAcknowledged(mseq: number, ack: number): boolean {
    return since(ack, mseq) < 0x8000_0000;
  }

  /** Number of receives that the peer believes to be posted here. */
  private get peerKnows(): number {
    return this.toldBufs - since(this.received, this.toldAck);
  }

  /** True if the next message tells the peer about new receives. */
  private get gives(): boolean {
    return this.postedCount > this.peerKnows;
  }

  allows(kind: CreditClass): boolean {
    return this.available >= CREDITS_NEEDED[kind] && (kind !== 'update' || this.gives);
  }

  /**
   * True if the peer should be told: about many receives, or about some when it cannot send data.
   */
  get owesUpdate(): boolean {
    const { postedCount, peerKnows } = this;
    if (!this.gives) return false;
    const isStarving = peerKnows < CREDITS_NEEDED.data && postedCount >= CREDITS_NEEDED.data;
    return isStarving || peerKnows * UPDATE_RATIO < postedCount;
  }

  onPosted(): void {
    this.postedCount++;
  }

  /** Numbers a message that is being sent. */
  take(flags: number): Sequence {
    const mseq = this.next;
    this.next = (this.next + 1) >>> 0;
    this.toldBufs = this.postedCount;
    this.toldAck = this.received;
    return { flags, bufs: this.postedCount, mseq, mseqAck: this.received };
  }

  /** @throws SdpProtocolError for impossible numbers */
  onReceived({ bufs, mseq, mseqAck }: Sequence): void {
    const expected = (this.received + 1) >>> 0;
    expect(mseq === expected, () => `mseq is ${mseq}: ${expected} is next`);
    const progress = since(mseqAck, this.peerAck);
    const most = this.unacknowledged;
    expect(
      progress <= most,
      () => `mseqAck is ${mseqAck}: it may be ${this.peerAck} to ${this.lastSent}`,
    );
    const underWay = most - progress;
    expect(
      bufs >= underWay,
      () => `bufs is ${bufs}: ${underWay} messages in flight need receives that were promised`,
    );
    this.received = mseq;
    this.postedCount--;
    this.peerAck = mseqAck;
    this.peerBufs = bufs;
  }
}
