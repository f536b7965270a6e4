/**
 * Receives the messages of a channel. Frames stay in their receives until a message is asked for:
 * that is the backpressure. The consumer gets a copy of its own.
 */
import type { Message } from '../message.js';
import { type EndError, type WaitHost, type WaitOptions, Waits } from '../wait.js';
import { Fifo } from './fifo.js';
import { FRAME_HEADER_BYTES, type FrameHeader } from './frame.js';
import type { OutgoingMessage } from './sender.js';
import type { ChannelSession } from './session.js';

/** A receive that has completed. */
export type FrameBuffer = Pick<Message, 'bytes' | 'release'>;

interface Arrived {
  readonly header: FrameHeader;
  readonly buffer: FrameBuffer;
}

/** A message with frames still in their receives. */
interface Assembly {
  readonly bytes: Uint8Array;
  filledBytes: number;
}

export class Receiver {
  private readonly takers: Waits<Uint8Array>;
  private readonly frames = new Fifo<Arrived>();
  private assembly: Assembly | undefined = undefined;
  /** Set when nothing comes after the frames that are here. */
  private last: EndError | undefined = undefined;
  /** Everything has been taken, or dropped. */
  private ended: EndError | undefined = undefined;
  private isDropping = false;

  /**
   * @param peerEnds the error for takers when the peer has ended its messages
   * @param onPosted receives have been posted again: there may be credits to report
   */
  constructor(
    host: WaitHost,
    private readonly session: ChannelSession<OutgoingMessage>,
    private readonly peerEnds: EndError,
    private readonly onPosted: () => void,
  ) {
    this.takers = new Waits(host);
  }

  /** Frames not taken yet. */
  get waiting(): number {
    return this.frames.length;
  }

  /** True if the peer sends no more messages, and all have been taken. */
  get isOver(): boolean {
    return this.ended === this.peerEnds;
  }

  /** @throws ChannelProtocolError when the peer breaks the protocol */
  arrived(buffer: FrameBuffer): void {
    const header = this.headerOf(buffer);
    if (header.kind === 'CREDIT') {
      buffer.release();
      this.session.posted('CREDIT');
      this.onPosted();
      return;
    }
    this.frames.push({ header, buffer });
    this.deliver();
  }

  /** @param options checked by `checkWait` */
  take(operation: string, options: WaitOptions): Promise<Uint8Array> {
    if (this.ended !== undefined) return Promise.reject(this.ended(operation));
    const promise = this.takers.add(operation, options);
    this.deliver();
    return promise;
  }

  /** The connection has ended. Whole messages can still be taken; then takers get this error. */
  end(errorOf: EndError): void {
    this.last ??= errorOf;
    this.deliver();
  }

  /** Drops received messages, and all that still arrive. */
  drop(errorOf: EndError): void {
    this.isDropping = true;
    this.last ??= errorOf;
    this.deliver();
  }

  /** A refused frame leaves its receive to the connection, which frees its memory as a whole. */
  private headerOf(buffer: FrameBuffer): FrameHeader {
    try {
      return this.session.arrived(buffer.bytes);
    } catch (error) {
      buffer.release();
      throw error;
    }
  }

  /** Takes frames out of their receives, as long as a call waits for a message. */
  private deliver(): void {
    let [posted, first] = [false, this.frames.first];
    while (first !== undefined && this.mayTake(first)) {
      this.frames.shift();
      this.takeOut(first);
      posted = true;
      first = this.frames.first;
    }
    if (first === undefined && this.last !== undefined && this.ended === undefined) {
      this.ended = this.last;
      this.assembly = undefined;
      this.takers.end(this.ended);
    }
    if (posted) this.onPosted();
  }

  private mayTake({ header }: Arrived): boolean {
    return this.isDropping || header.kind !== 'MESSAGE' || !this.takers.isEmpty;
  }

  private takeOut({ header, buffer }: Arrived): void {
    const { kind } = header;
    let whole: Uint8Array | undefined;
    if (kind === 'MESSAGE' && !this.isDropping) whole = this.assemble(header, buffer);
    else if (kind === 'ABANDON') this.assembly = undefined;
    else if (kind === 'END') this.last ??= this.peerEnds;
    buffer.release();
    this.session.posted(kind);
    if (whole !== undefined) this.takers.serve(whole);
  }

  /** @returns the message, when that was its last frame */
  private assemble(
    { remainingBytes }: FrameHeader,
    { bytes }: FrameBuffer,
  ): Uint8Array | undefined {
    if (this.assembly === undefined && bytes.length - FRAME_HEADER_BYTES === remainingBytes) {
      return bytes.slice(FRAME_HEADER_BYTES);
    }
    const payload = bytes.subarray(FRAME_HEADER_BYTES);
    this.assembly ??= { bytes: new Uint8Array(remainingBytes), filledBytes: 0 };
    const { assembly } = this;
    assembly.bytes.set(payload, assembly.filledBytes);
    assembly.filledBytes += payload.length;
    if (assembly.filledBytes < assembly.bytes.length) return undefined;
    this.assembly = undefined;
    return assembly.bytes;
  }
}
