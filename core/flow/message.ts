/** A received message or datagram. */
import { DatDto } from '../evd/index.js';
import { showAs } from '../spi/checks/index.js';
import { invalidState } from './flow-error.js';
import type { ReceiveArea } from './receive-area.js';

/** Completions of received messages, and those with an immediate. */
export const RECEIVES: ReadonlySet<number> = new Set([
  DatDto.RECEIVE,
  DatDto.RECEIVE_WITH_INVALIDATE,
  DatDto.RECV_IMMED,
  DatDto.RECV_MSG_IMMED,
]);
export const WITH_IMMEDIATE: ReadonlySet<number> = new Set([
  DatDto.RECV_IMMED,
  DatDto.RECV_MSG_IMMED,
]);

const NO_BYTES = new Uint8Array(0);

/** One send of the peer. Its bytes are a copy, or the receive buffer itself (`lend`). */
export class Message {
  static {
    showAs(this, 'Message', ({ lengthBytes, immediate, isReleased: released }) => {
      return { lengthBytes, immediate, released };
    });
  }

  private content: Uint8Array | undefined = undefined;
  private home: ReceiveArea | undefined;
  private released = false;

  /** @internal */
  constructor(
    home: ReceiveArea,
    private readonly slot: number,
    /** Bytes of the message. */
    readonly lengthBytes: number,
    /** u32 that the peer has sent with the message, or undefined. */
    readonly immediate: number | undefined,
    /** For an RDMA write with immediate: bytes that the peer has written to other memory. */
    readonly writtenBytes: number | undefined,
    /** The remote context of ours that the peer has invalidated, or undefined. */
    readonly invalidatedRmrContext: number | undefined,
  ) {
    this.home = home;
  }

  /**
   * The bytes of the message.
   * @throws FlowError DAT_INVALID_STATE where the buffer was lent, and has been released
   */
  get bytes(): Uint8Array {
    if (this.content !== undefined) return this.content;
    throw invalidState('message.bytes', 'the message has been released');
  }

  get isReleased(): boolean {
    return this.released;
  }

  /**
   * Posts the receive buffer again. Does nothing for a copy.
   * @throws FlowError DAT_INVALID_STATE where the buffer was lent, and has been released before
   */
  release(): void {
    const { home } = this;
    if (this.released && this.content === undefined) {
      throw invalidState('message.release', 'the message has been released');
    }
    this.released = true;
    if (home === undefined) return;
    this.home = undefined;
    this.content = undefined;
    home.giveBack(this.slot);
  }

  [Symbol.dispose](): void {
    if (!this.released) this.release();
  }

  /** @internal hands it to its taker. @param lend lends the buffer; else copies it */
  handOver(lend: boolean): void {
    const { home, slot, lengthBytes } = this;
    if (home === undefined) return;
    if (lend) {
      this.content = home.view(slot, lengthBytes);
      return;
    }
    this.content = lengthBytes === 0 ? NO_BYTES : home.copy(slot, lengthBytes);
    this.home = undefined;
    home.giveBack(slot);
  }

  /** @internal drops it: no call will take it */
  drop(): void {
    this.content = undefined;
    this.release();
  }
}
