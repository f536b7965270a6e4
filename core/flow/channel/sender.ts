/** Sends the messages of a channel: puts frames into registered buffers, and posts them. */
import type { LmrSegment } from '../../dat/memory/segment.js';
import type { BufferPool, Lease } from '../buffer-pool.js';
import { toFlowError } from '../flow-error.js';
import {
  type EndError,
  Wait,
  type WaitHost,
  type WaitOptions,
  type WaitOwner,
  Waits,
} from '../wait.js';
import type { Departing, DepartingStage } from './departures.js';
import { emitFrame, FRAME_HEADER_BYTES } from './frame.js';
import type { ChannelSession, DepartingFrame } from './session.js';

/** The state of its message, for the error of a wait that ends early. */
const STILL: Readonly<Record<DepartingStage, string>> = {
  WAITING: 'nothing of it has been sent, and it does not arrive',
  BEGUN: 'a part of it has been sent, and it does not arrive',
  ABANDONED: 'it does not arrive',
  GONE: 'it has been posted, and may arrive',
  VOID: 'it does not arrive',
};
const NO_PARTS: readonly Uint8Array[] = [];

/** Sends frames. */
export interface FramePort {
  send(frame: LmrSegment): Promise<void>;
}

/** A message being sent, and the promise of its sender. */
export class OutgoingMessage implements Departing, WaitOwner<void> {
  sentBytes = 0;
  stage: DepartingStage = 'WAITING';
  /** Frames of it that are posted and have not completed. */
  inFlight = 0;
  readonly wait: Wait<void>;
  private awaited = true;

  constructor(
    operation: string,
    readonly lengthBytes: number,
    private parts: readonly Uint8Array[],
    private readonly onLeaving: (message: OutgoingMessage) => void,
  ) {
    this.wait = new Wait<void>(this, operation);
  }

  leave(): void {
    this.awaited = false;
    this.parts = NO_PARTS;
    this.onLeaving(this);
  }

  explain(): string {
    return STILL[this.stage];
  }

  /** Settles its promise, unless it is settled. */
  settle(error?: Error): void {
    if (!this.awaited) return;
    this.awaited = false;
    this.parts = NO_PARTS;
    if (error === undefined) this.wait.resolve();
    else this.wait.reject(error);
  }

  /** Copies so many bytes of it, from an offset on, to a place in `target`. */
  copy(offsetBytes: number, lengthBytes: number, target: Uint8Array, start: number): void {
    let [skip, at] = [offsetBytes, start];
    const end = start + lengthBytes;
    for (const part of this.parts) {
      if (at === end) return;
      if (skip >= part.length) {
        skip -= part.length;
        continue;
      }
      const isWhole = skip === 0 && part.length <= end - at;
      const piece = isWhole ? part : part.subarray(skip, skip + end - at);
      target.set(piece, at);
      at += piece.length;
      skip = 0;
    }
  }
}

export class Sender {
  private readonly ends: Waits<void>;
  /** Frames posted and not completed. */
  private inFlight = 0;
  private endIsSent = false;
  private ended: EndError | undefined = undefined;
  private spare: Lease | undefined = undefined;
  private readonly underWay = new Set<OutgoingMessage>();

  /**
   * @param pool of buffers that hold the longest frame; it is the sender's to close
   * @param onFailure no buffer can be had
   */
  constructor(
    private readonly host: WaitHost,
    private readonly session: ChannelSession<OutgoingMessage>,
    private readonly port: FramePort,
    private readonly pool: BufferPool,
    private readonly onFailure: (error: Error) => void,
  ) {
    this.ends = new Waits(host, () => 'what was sent before has not left yet');
  }

  /** Messages whose promises have not ended, or whose frames have not completed. */
  get pending(): number {
    return this.underWay.size;
  }

  /** Bytes are copied frame by frame, when each is sent. Not to be called after `end`. */
  send(
    operation: string,
    parts: readonly Uint8Array[],
    lengthBytes: number,
    options: WaitOptions,
  ): Promise<void> {
    const message = new OutgoingMessage(operation, lengthBytes, parts, this.onLeaving);
    const { wait } = message;
    wait.limit(this.host, options);
    this.underWay.add(message);
    this.session.departures.add(message);
    this.pump();
    return wait.promise;
  }

  /** Ends sending. Resolves when the peer has all messages, and knows that they were all. */
  finish(operation: string, options: WaitOptions): Promise<void> {
    this.session.departures.finish();
    if (this.endIsSent) return Promise.resolve();
    if (this.ended !== undefined) return Promise.reject(this.ended(operation));
    const over = this.ends.add(operation, options);
    this.pump();
    return over;
  }

  /** Posts frames that can be sent. Call it when there is something to send, or for new credits. */
  pump(): void {
    while (this.ended === undefined && this.inFlight < this.pool.maxBuffers) {
      try {
        this.spare ??= this.pool.tryTake();
      } catch (error) {
        this.onFailure(error as Error);
        return;
      }
      if (this.spare === undefined) return;
      const frame = this.session.next();
      if (frame === undefined) return;
      const lease = this.spare;
      this.spare = undefined;
      this.post(frame, lease);
    }
  }

  /** Ends all promises with the connection. Buffers are freed when nothing is posted. */
  end(errorOf: EndError): void {
    if (this.ended !== undefined) return;
    this.ended = errorOf;
    this.session.departures.drain();
    for (const message of this.underWay) message.settle(errorOf(message.wait.operation));
    this.underWay.clear();
    this.ends.end(errorOf);
    this.spare?.release();
    this.spare = undefined;
    this.closePool();
  }

  private readonly onLeaving = (message: OutgoingMessage): void => {
    this.session.departures.giveUp(message);
    this.drop(message);
    this.pump();
  };

  private post(frame: DepartingFrame<OutgoingMessage>, lease: Lease): void {
    const { message, offsetBytes, payloadBytes } = frame;
    const { bytes } = lease;
    emitFrame(frame, bytes);
    message?.copy(offsetBytes, payloadBytes, bytes, FRAME_HEADER_BYTES);
    this.inFlight++;
    if (message !== undefined) message.inFlight++;
    const isEnd = frame.kind === 'END';
    this.port.send(lease.segment(FRAME_HEADER_BYTES + payloadBytes)).then(
      () => this.completed(lease, message, isEnd),
      (error: unknown) => this.completed(lease, message, isEnd, toFlowError('channel.send', error)),
    );
  }

  private completed(
    lease: Lease,
    message: OutgoingMessage | undefined,
    isEnd: boolean,
    error?: Error,
  ): void {
    lease.release();
    this.inFlight--;
    if (message !== undefined) {
      message.inFlight--;
      if (error !== undefined) message.settle(error);
      else if (message.stage === 'GONE' && message.inFlight === 0) message.settle();
      this.drop(message);
    } else if (isEnd && error === undefined) {
      this.endIsSent = true;
      while (this.ends.serve());
    }
    if (this.ended === undefined) this.pump();
    else this.closePool();
  }

  /** Forgets a finished message. */
  private drop(message: OutgoingMessage): void {
    const isOver = message.stage === 'GONE' || message.stage === 'VOID';
    if (isOver && message.inFlight === 0) this.underWay.delete(message);
  }

  private closePool(): void {
    if (this.inFlight === 0) this.pool.close();
  }
}
