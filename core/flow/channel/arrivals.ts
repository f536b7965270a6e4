/** Which frames of the peer may follow which, and what becomes of its messages. */
import { MAX_MESSAGE_BYTES } from './announcement.js';
import type { FrameHeader, FrameKind } from './frame.js';
import { breach } from './protocol-error.js';

export type ArrivalState = 'BETWEEN' | 'WITHIN' | 'ENDED';

/**
 * What the next state is; a frame that is not in the row is a breach. After MESSAGE it is WITHIN
 * while bytes of the message are missing, and BETWEEN when none are.
 */
export const ARRIVAL_STATES: Readonly<
  Record<ArrivalState, Partial<Record<FrameKind, ArrivalState>>>
> = {
  /** Of messages: none has begun. */
  BETWEEN: { MESSAGE: 'WITHIN', END: 'ENDED', CREDIT: 'BETWEEN' },
  /** A message has begun. */
  WITHIN: { MESSAGE: 'WITHIN', ABANDON: 'BETWEEN', CREDIT: 'WITHIN' },
  /** No more messages. */
  ENDED: { CREDIT: 'ENDED' },
};

export class Arrivals {
  state: ArrivalState = 'BETWEEN';
  /** Bytes of the message that has begun which are still to come. */
  missingBytes = 0;

  /** @param maxMessageBytes that this side has announced */
  constructor(private readonly maxMessageBytes = MAX_MESSAGE_BYTES) {}

  /**
   * @param payloadBytes of this frame
   * @throws ChannelProtocolError naming field, value and limit
   */
  arrived({ kind, remainingBytes }: FrameHeader, payloadBytes: number): void {
    const row = ARRIVAL_STATES[this.state];
    const next = row[kind];
    if (next === undefined) {
      const allowed = Object.keys(row).join(' or ');
      throw breach('frame.kind', kind, `${allowed} while the peer is ${this.state}`);
    }
    if (kind === 'CREDIT') return;
    if (kind === 'MESSAGE') this.checkRemaining(remainingBytes);
    this.missingBytes = remainingBytes - payloadBytes;
    this.state = next === 'WITHIN' && this.missingBytes === 0 ? 'BETWEEN' : next;
  }

  private checkRemaining(remainingBytes: number): void {
    const { state, missingBytes, maxMessageBytes } = this;
    if (state === 'WITHIN' && remainingBytes !== missingBytes) {
      throw breach('frame.remainingBytes', remainingBytes, `${missingBytes}`);
    }
    if (remainingBytes > maxMessageBytes) {
      throw breach('frame.remainingBytes', remainingBytes, `at most ${maxMessageBytes}`);
    }
  }
}
