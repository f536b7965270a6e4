/**
 * A channel over a connection: messages of any length, and credits. A slow side makes the other one
 * wait without an RNR NAK. The protocol is in docs/channel.md.
 */
import { BYTES, checkValue, instanceOf, kindOf, showAs } from '../../spi/checks/index.js';
import { BufferPool } from '../buffer-pool.js';
import { Connection } from '../connection.js';
import { explanationOf, FlowError, refusalOf, toFlowError } from '../flow-error.js';
import { checkWait, type EndError, NO_OPTIONS, type WaitHost, type WaitOptions } from '../wait.js';
import { leaveUnhandled } from '../../spi/index.js';
import {
  ANNOUNCEMENT_BYTES,
  type Announced,
  type ChannelLimits,
  readAnnouncement,
} from './announcement.js';
import { FRAME_HEADER_BYTES } from './frame.js';
import { announcedLimits, type ChannelOptions } from './limits.js';
import { ChannelProtocolError } from './protocol-error.js';
import { type FrameBuffer, Receiver } from './receiver.js';
import { type FramePort, type OutgoingMessage, Sender } from './sender.js';
import { ChannelSession } from './session.js';

/** Frames posted at a time; the rest waits for a completion. */
const MOST_IN_FLIGHT = 32;
const CLOSE_TIMEOUT_MS = 5000;

const CONNECTION = instanceOf(Connection, 'a Connection');
const PARTS = kindOf<Uint8Array | readonly Uint8Array[]>(
  'a Uint8Array, or an array of them',
  (value) =>
    BYTES.accepts(value) || (Array.isArray(value) && value.every((part) => BYTES.accepts(part))),
);

/** A message to send: bytes, or pieces of it in order. */
export type ChannelData = Uint8Array | readonly Uint8Array[];

const SEND = 'channel.send';
const refuseToSend = refusalOf(SEND);
const addLength = (sum: number, { length }: Uint8Array): number => sum + length;

/** The connection beneath a channel, as far as it needs one. */
export interface ChannelPort extends FramePort {
  receive(): Promise<FrameBuffer>;
  close(options?: WaitOptions): Promise<void>;
}

/** Makes the channel's own part of the flight record, where there is one. */
interface Ending {
  flightRecord(): readonly string[];
}

/**
 * Made by `channel`. Messages arrive whole and in order, each once. It lasts as long as its
 * connection, and owns it: do not use `conn.send` and `conn.receive` besides.
 */
export class Channel implements AsyncIterable<Uint8Array> {
  static {
    showAs(this, 'Channel', ({ session, sender, receiver, version, peer }) => {
      const { available: credits, owed } = session.credits;
      return {
        version,
        credits,
        owed,
        pending: sender.pending,
        waiting: receiver.waiting,
        ...peer,
      };
    });
  }

  /** The version of the protocol in use. */
  readonly version: number;
  private readonly session: ChannelSession<OutgoingMessage>;
  private readonly sender: Sender;
  private readonly receiver: Receiver;
  private readonly peer: ChannelLimits;
  private endedBy: EndError | undefined = undefined;
  private closing: Promise<void> | undefined = undefined;

  /** @internal use `channel` */
  constructor(
    private readonly port: ChannelPort,
    host: WaitHost,
    pool: BufferPool,
    own: ChannelLimits,
    { version, ...peer }: Announced,
    private readonly ending: Ending,
  ) {
    this.version = version;
    this.peer = peer;
    this.session = new ChannelSession(own, peer);
    this.sender = new Sender(host, this.session, port, pool, (error) => this.fail(error));
    this.receiver = new Receiver(host, this.session, peerEnded, () => this.sender.pump());
    leaveUnhandled(this.takeIn());
  }

  /** Bytes of the longest message that the peer takes. */
  get maxMessageBytes(): number {
    return this.peer.maxMessageBytes;
  }

  /** True while messages can be sent. */
  get isOpen(): boolean {
    return this.endedBy === undefined && this.session.departures.isOpen;
  }

  /**
   * Sends a message; resolves when the peer has all of it. Without credits it waits until the peer
   * takes messages, behind messages sent earlier.
   * @param data bytes, or pieces of the message in order; they must stay as they are until then
   * @param options a wait that ends early says whether the message may arrive; if not, nothing of
   * it does
   * @throws FlowError, as a rejection: DAT_LENGTH_ERROR for more than `maxMessageBytes`, before
   * anything is sent; DAT_TIMEOUT_EXPIRED, DAT_INTERRUPTED_CALL; DAT_INVALID_PARAMETER;
   * DAT_INVALID_STATE after `end`; the end of the connection
   */
  send(data: ChannelData, options: WaitOptions = NO_OPTIONS): Promise<void> {
    const operation = SEND;
    try {
      checkValue('data', data, PARTS, refuseToSend);
      checkWait(operation, options);
      const parts = data instanceof Uint8Array ? [data] : data;
      const lengthBytes = parts.reduce(addLength, 0);
      this.checkSendable(operation, lengthBytes);
      return this.sender.send(operation, parts, lengthBytes, options);
    } catch (error) {
      return Promise.reject(toFlowError(operation, error));
    }
  }

  /**
   * The oldest message not taken, or the next: bytes of the consumer's own. Messages that arrived
   * whole before the end of the connection can be received after it.
   * @throws FlowError, as a rejection: DAT_TIMEOUT_EXPIRED, DAT_INTERRUPTED_CALL, without losing a
   * message; DAT_CONN_ENDED when the peer sends no more; the end of the connection
   */
  receive(options: WaitOptions = NO_OPTIONS): Promise<Uint8Array> {
    const operation = 'channel.receive';
    try {
      checkWait(operation, options);
      return this.receiver.take(operation, options);
    } catch (error) {
      return Promise.reject(toFlowError(operation, error));
    }
  }

  /** Messages, until the peer sends no more or this side closes; throws when it breaks. */
  async *[Symbol.asyncIterator](): AsyncGenerator<Uint8Array, void, undefined> {
    for (;;) {
      let message: Uint8Array;
      try {
        message = await this.receive();
      } catch (error) {
        if (this.hasEnded) return;
        throw error;
      }
      yield message;
    }
  }

  /** True for an orderly end: the peer has ended, or this side has closed. */
  get hasEnded(): boolean {
    return this.receiver.isOver || this.closing !== undefined;
  }

  /**
   * Ends sending: the peer's iteration ends after the last message. Messages can still be received.
   * Resolves when the peer has the end.
   * @throws FlowError, as a rejection: DAT_TIMEOUT_EXPIRED, DAT_INTERRUPTED_CALL; the end of the
   * connection
   */
  async end(options: WaitOptions = NO_OPTIONS): Promise<void> {
    const operation = 'channel.end';
    checkWait(operation, options);
    await this.sender.finish(operation, options);
  }

  /**
   * Ends the channel and its connection. Sends pending messages first, drops received ones that
   * nothing has taken, and ends receives with DAT_CONN_CLOSED. Resolves when it is done; later
   * calls resolve with the first.
   * @param options after `timeoutMs` (default 5000), or when `signal` fires, it ends at once
   * @throws FlowError DAT_INVALID_PARAMETER alone
   */
  close(options: WaitOptions = NO_OPTIONS): Promise<void> {
    this.closing ??= this.leave(options);
    return this.closing;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  private async leave(options: WaitOptions): Promise<void> {
    const operation = 'channel.close';
    const { timeoutMs = CLOSE_TIMEOUT_MS, signal } = options;
    this.receiver.drop(closedHere);
    if (signal?.aborted !== true && timeoutMs > 0) {
      await this.sender.finish(operation, { timeoutMs, signal }).catch(() => undefined);
    }
    this.over(closedHere);
    await this.port.close({ timeoutMs, signal });
  }

  private checkSendable(operation: string, lengthBytes: number): void {
    if (this.endedBy !== undefined) throw this.endedBy(operation);
    if (this.closing !== undefined) throw closedHere(operation);
    if (!this.session.departures.isOpen) {
      throw new FlowError('DAT_INVALID_STATE', { operation, message: 'after channel.end()' });
    }
    const { maxMessageBytes } = this.peer;
    if (lengthBytes <= maxMessageBytes) return;
    throw new FlowError('DAT_LENGTH_ERROR', {
      operation,
      message: `a message of ${lengthBytes} bytes: the peer takes at most ${maxMessageBytes}`,
      value: lengthBytes,
    });
  }

  /** Every receive that completes, until the connection ends. */
  private async takeIn(): Promise<void> {
    try {
      while (this.endedBy === undefined) this.receiver.arrived(await this.port.receive());
    } catch (error) {
      this.fail(error as Error);
    }
  }

  /** Handles the end of the connection, or an error that must end it. */
  private fail(cause: Error): void {
    if (this.endedBy !== undefined) return;
    const isBreach = cause instanceof ChannelProtocolError;
    const flightRecord = this.ending.flightRecord();
    this.over((operation) => {
      if (!isBreach) return ended(operation, cause);
      const message = `the peer breaks the protocol of the channel: ${cause.message}`;
      const reason = 'PEER_PROTOCOL';
      return new FlowError('DAT_CONN_BROKEN', { operation, message, reason, flightRecord, cause });
    });
    // A connection that has ended already is closed for nothing.
    leaveUnhandled(this.port.close({ timeoutMs: 0 }));
  }

  private over(errorOf: EndError): void {
    if (this.endedBy !== undefined) return;
    this.endedBy = errorOf;
    this.sender.end(errorOf);
    this.receiver.end(errorOf);
  }
}

function closedHere(operation: string): FlowError {
  return new FlowError('DAT_CONN_CLOSED', { operation, message: 'this side has closed it' });
}

function peerEnded(operation: string): FlowError {
  return new FlowError('DAT_CONN_ENDED', { operation, message: 'the peer sends no more' });
}

/** The error of a call when the connection has ended: one of its own, as `conn` makes them. */
function ended(operation: string, end: Error): FlowError {
  const error = toFlowError(operation, end);
  const { code, reason, flightRecord, cause } = error;
  const message = explanationOf(error);
  return new FlowError(code, { operation, message, reason, flightRecord, cause });
}

/**
 * A channel over a connection that was made for one: `offerChannel` at the side that connects,
 * `acceptChannel` at the side that listens. Its limits are those that were announced there.
 * @param options not needed; limits that are given must be those
 * @throws FlowError DAT_INVALID_PARAMETER for other limits; DAT_INVALID_STATE when this side has
 * announced no channel; DAT_CONN_BROKEN when the peer has not, or none that can be spoken with:
 * then the connection is closed
 */
export function channel(conn: Connection, options: ChannelOptions = {}): Channel {
  const operation = 'channel';
  checkValue('conn', conn, CONNECTION, refusalOf(operation));
  const own = announcedLimits(operation, conn, options);
  const announced = announcedBy(operation, conn);
  const frameBytes = Math.min(announced.bufferBytes, conn.maxMessageBytes);
  const peer = { ...announced, bufferBytes: frameBytes };
  const pool = new BufferPool({
    pz: conn.ep.pz,
    bufferBytes: Math.max(frameBytes, FRAME_HEADER_BYTES),
    maxBuffers: Math.min(MOST_IN_FLIGHT, announced.buffers),
  });
  return new Channel(conn, conn.ia.core.context, pool, own, peer, conn.ep);
}

function announcedBy(operation: string, conn: Connection): Announced {
  try {
    return readAnnouncement(conn.peerPrivateData);
  } catch (cause) {
    const flightRecord = conn.ep.flightRecord();
    leaveUnhandled(conn.close({ timeoutMs: 0 }));
    const message = `the peer has announced no channel: ${(cause as Error).message}`;
    const reason = 'PEER_PROTOCOL';
    throw new FlowError('DAT_CONN_BROKEN', { operation, message, reason, flightRecord, cause });
  }
}

/** The peer consumer's private data, behind the announcement. */
export function peerPrivateDataOf(conn: Connection): Uint8Array {
  return conn.peerPrivateData.subarray(ANNOUNCEMENT_BYTES);
}
