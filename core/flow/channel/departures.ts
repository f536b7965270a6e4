/** Messages to be sent, in order, and how each is cut into frames. */
import { assert } from '../../spi/checks/index.js';
import { Fifo } from './fifo.js';
import { FRAME_HEADER_BYTES, type FrameKind } from './frame.js';

/** A message to be sent. Its owner keeps the bytes. */
export interface Departing {
  readonly lengthBytes: number;
  /** Bytes of it in frames that have been sent. */
  sentBytes: number;
  stage: DepartingStage;
}

/**
 * | stage     | meaning                          | when it is cancelled         |
 * | --------- | -------------------------------- | ---------------------------- |
 * | WAITING   | no frame of it has been sent     | it is removed: VOID          |
 * | BEGUN     | some frames have been sent       | an ABANDON frame follows     |
 * | ABANDONED | cancelled, ABANDON is due        | it is already                |
 * | GONE      | all frames have been sent        | it arrives nevertheless      |
 * | VOID      | nothing of it arrives            | it is already                |
 */
export type DepartingStage = 'WAITING' | 'BEGUN' | 'ABANDONED' | 'GONE' | 'VOID';

/** The next stage of a cancelled message. */
const GIVEN_UP: Readonly<Record<DepartingStage, DepartingStage>> = {
  WAITING: 'VOID',
  BEGUN: 'ABANDONED',
  ABANDONED: 'ABANDONED',
  GONE: 'GONE',
  VOID: 'VOID',
};

/** A frame that can be sent when there is a credit for it. */
export interface NextFrame<M> {
  readonly kind: Exclude<FrameKind, 'CREDIT'>;
  /** The message of the frame; undefined for an END frame. */
  readonly message: M | undefined;
  /** Place of the payload in the message, and its length. */
  readonly offsetBytes: number;
  readonly payloadBytes: number;
}

export class Departures<M extends Departing> {
  private readonly messages = new Fifo<M>();
  /** State of END: not requested, requested, sent. */
  private end: 'OPEN' | 'ENDING' | 'ENDED' = 'OPEN';
  private readonly payloadBytes: number;

  /** @param frameBytes of the longest frame that the peer takes */
  constructor(frameBytes: number) {
    this.payloadBytes = frameBytes - FRAME_HEADER_BYTES;
  }

  get isOpen(): boolean {
    return this.end === 'OPEN';
  }

  get hasEnded(): boolean {
    return this.end === 'ENDED';
  }

  /** Adds a message behind the others. */
  add(message: M): void {
    assert(this.isOpen, 'no message follows the end');
    this.messages.push(message);
  }

  giveUp(message: M): void {
    message.stage = GIVEN_UP[message.stage];
  }

  /** Sends END after the last message. */
  finish(): void {
    if (this.end === 'OPEN') this.end = 'ENDING';
  }

  /** The next frame to send; undefined when there is none. */
  next(): NextFrame<M> | undefined {
    const message = this.head();
    if (message === undefined) {
      if (this.end !== 'ENDING') return undefined;
      return { kind: 'END', message: undefined, offsetBytes: 0, payloadBytes: 0 };
    }
    const offsetBytes = message.sentBytes;
    if (message.stage === 'ABANDONED') {
      return { kind: 'ABANDON', message, offsetBytes, payloadBytes: 0 };
    }
    const payloadBytes = Math.min(this.payloadBytes, message.lengthBytes - offsetBytes);
    return { kind: 'MESSAGE', message, offsetBytes, payloadBytes };
  }

  /** Records that a frame has been sent. */
  left({ kind, message, payloadBytes }: NextFrame<M>): void {
    if (message === undefined) {
      this.end = 'ENDED';
      return;
    }
    message.sentBytes += payloadBytes;
    if (kind === 'ABANDON') message.stage = 'VOID';
    else message.stage = message.sentBytes === message.lengthBytes ? 'GONE' : 'BEGUN';
    if (message.stage !== 'BEGUN') this.messages.shift();
  }

  /** Removes all messages that have not been sent: the connection has ended. */
  drain(): M[] {
    return this.messages.drain();
  }

  /** The oldest message, after removing those that are VOID. */
  private head(): M | undefined {
    while (this.messages.first?.stage === 'VOID') this.messages.shift();
    return this.messages.first;
  }
}
