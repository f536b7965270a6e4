/**
 * One side of a channel, without a connection. It chooses the frame to send next, and checks frames
 * that arrive. It has no bytes of messages, no promises and no time. Its owner calls:
 *
 *     send, giveUp, finish      the consumer's
 *     next                      while the connection has room: the frame to post, if any
 *     arrived                   of each frame, in order; then, when the frame's receive has been
 *     posted                    posted again
 */
import { type ChannelLimits, MAX_MESSAGE_BYTES } from './announcement.js';
import { Credits } from './credits.js';
import { type Departing, Departures, type NextFrame } from './departures.js';
import { FRAME_HEADER_BYTES, type FrameHeader, type FrameKind, parseFrame } from './frame.js';
import { breach } from './protocol-error.js';

/** State of the peer's frames: it decides which may follow, and where its messages go. */
type ArrivalState = 'BETWEEN' | 'WITHIN' | 'ENDED';

/**
 * The next state after a frame; a frame that is not in the row is a breach. After MESSAGE it is
 * WITHIN while bytes of the message are missing, and BETWEEN when none are.
 */
const ARRIVAL_STATES: Readonly<Record<ArrivalState, Partial<Record<FrameKind, ArrivalState>>>> = {
  /** Between messages. */
  BETWEEN: { MESSAGE: 'WITHIN', END: 'ENDED', CREDIT: 'BETWEEN' },
  /** A message has begun. */
  WITHIN: { MESSAGE: 'WITHIN', ABANDON: 'BETWEEN', CREDIT: 'WITHIN' },
  /** No more messages. */
  ENDED: { CREDIT: 'ENDED' },
};

class Arrivals {
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

/** A frame to be posted: its header, and where its payload is. */
export interface DepartingFrame<M> extends FrameHeader, Omit<NextFrame<M>, 'kind'> {
  readonly kind: FrameKind;
}

const NO_MESSAGE = { message: undefined, offsetBytes: 0, payloadBytes: 0 } as const;

export class ChannelSession<M extends Departing = Departing> {
  readonly credits: Credits;
  readonly departures: Departures<M>;
  readonly arrivals: Arrivals;

  /**
   * @param own what this side has announced
   * @param peer what the peer has announced
   */
  constructor(own: ChannelLimits, peer: ChannelLimits) {
    this.credits = new Credits(own.buffers, peer.buffers);
    this.departures = new Departures(peer.bufferBytes);
    this.arrivals = new Arrivals(own.maxMessageBytes);
  }

  /**
   * The frame to post next: first of the consumer's messages, else credits that are due. It counts
   * as sent. Undefined: nothing can be sent now.
   */
  next(): DepartingFrame<M> | undefined {
    const { credits, departures } = this;
    const frame = departures.next();
    if (frame !== undefined && credits.maySend(frame.kind)) {
      const { message, kind, offsetBytes, payloadBytes } = frame;
      const lengthBytes = kind === 'MESSAGE' ? (message?.lengthBytes ?? 0) : offsetBytes;
      departures.left(frame);
      const remainingBytes = lengthBytes - offsetBytes;
      const { updates, credits: granted } = credits.spend(kind);
      // Without a spread, which costs several times as much.
      return {
        kind,
        message,
        offsetBytes,
        payloadBytes,
        updates,
        credits: granted,
        remainingBytes,
      };
    }
    if (!credits.maySend('CREDIT')) return undefined;
    return { kind: 'CREDIT', ...NO_MESSAGE, ...credits.spend('CREDIT'), remainingBytes: 0 };
  }

  /**
   * Handles a frame that arrived.
   * @throws ChannelProtocolError when the peer breaks the protocol: the connection is to end
   */
  arrived(data: Uint8Array): FrameHeader {
    const header = parseFrame(data);
    this.arrivals.arrived(header, data.length - FRAME_HEADER_BYTES);
    this.credits.arrived(header.kind, header);
    return header;
  }

  /** The receive of a frame of this kind has been posted again. */
  posted(kind: FrameKind): void {
    this.credits.posted(kind);
  }
}
