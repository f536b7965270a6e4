/**
 * Credits: a frame is sent only into a receive that the peer is known to have posted, so that it
 * never meets an RNR NAK. Of the receives that a side posts, all but one are for messages; the last
 * one is reserved for a CREDIT frame of the peer.
 *
 * | frame                | takes                 | may be sent while                             |
 * | -------------------- | --------------------- | --------------------------------------------- |
 * | MESSAGE ABANDON END  | a credit for messages | there is one                                  |
 * | CREDIT               | the reserved credit   | it is here, and credits are due to the peer   |
 *
 * Every frame carries the credits that have become free since the one before. A CREDIT frame is
 * sent only if no other frame can carry them, and never merely because a CREDIT frame has arrived.
 * The next frame of any kind reports that one (`updates`), which gives the reserved credit back. So
 * two idle sides stay idle, and two full sides never wait for each other: a peer without credits
 * has spent those of the last CREDIT frame, and has reported it.
 */
import { assert, checkInteger } from '../../spi/checks/index.js';
import { FRAME_KINDS, type FrameFields, type FrameKind } from './frame.js';
import { breach } from './protocol-error.js';

/** Receives of a side that no message may use. */
export const RESERVED_BUFFERS = 1;

export class Credits {
  /** Receives of the peer that a message may go into. */
  available: number;
  /** The peer's reserved receive is free, as far as this side knows. */
  reservedIsHere = true;
  /** Receives posted again and not yet reported to the peer. */
  owed = 0;
  /** A CREDIT frame of the peer that is not yet reported back. */
  private peerReservedIsOut = false;
  /** Its receive has been posted again: the next frame reports that. */
  private updateIsOwed = false;
  /** Credits that the peer has: those granted, minus the frames received. */
  private peerAvailable: number;
  private readonly limit: number;
  private readonly dueAt: number;

  /** @param ownBuffers, peerBuffers that each side has posted, the reserved one included */
  constructor(ownBuffers: number, peerBuffers: number) {
    this.limit = peerBuffers - RESERVED_BUFFERS;
    this.available = this.limit;
    this.peerAvailable = ownBuffers - RESERVED_BUFFERS;
    this.dueAt = Math.max(1, this.peerAvailable >>> 1);
  }

  /**
   * True if half of the receives are to be reported, or the peer can send nothing until they are.
   */
  get areDue(): boolean {
    return this.owed >= this.dueAt || (this.owed > 0 && this.peerAvailable === 0);
  }

  maySend(kind: FrameKind): boolean {
    return FRAME_KINDS[kind].takes === 'message'
      ? this.available > 0
      : this.reservedIsHere && this.areDue;
  }

  /** Counts a frame that is sent: it takes a credit, and carries all credits that are due. */
  spend(kind: FrameKind): Pick<FrameFields, 'updates' | 'credits'> {
    assert(this.maySend(kind), 'a frame is sent with a credit', kind);
    if (FRAME_KINDS[kind].takes === 'message') this.available--;
    else this.reservedIsHere = false;
    const { owed: credits } = this;
    const updates = this.updateIsOwed ? 1 : 0;
    this.peerAvailable += credits;
    this.owed = 0;
    if (this.updateIsOwed) this.peerReservedIsOut = false;
    this.updateIsOwed = false;
    return { updates, credits };
  }

  /**
   * Counts a frame that arrived.
   * @throws ChannelProtocolError when the peer had no credit for it, or grants what cannot be
   */
  arrived(kind: FrameKind, { updates, credits }: FrameFields): void {
    const takesMessage = FRAME_KINDS[kind].takes === 'message';
    if (takesMessage && this.peerAvailable === 0) {
      throw breach('the credit of the peer', 0, `at least 1 for ${kind}`);
    }
    if (!takesMessage && this.peerReservedIsOut) {
      throw breach('the number of CREDIT frames not told of', 2, 'at most 1');
    }
    const least = takesMessage ? 0 : 1;
    checkInteger('frame.credits', credits, least, this.limit - this.available, breach);
    checkInteger('frame.updates', updates, 0, this.reservedIsHere ? 0 : 1, breach);
    if (takesMessage) this.peerAvailable--;
    else this.peerReservedIsOut = true;
    this.available += credits;
    if (updates > 0) this.reservedIsHere = true;
  }

  /** The receive of a frame of the peer has been posted again. */
  posted(kind: FrameKind): void {
    if (FRAME_KINDS[kind].takes === 'message') this.owed++;
    else this.updateIsOwed = true;
  }
}
