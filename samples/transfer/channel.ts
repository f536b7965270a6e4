/**
 * A connected endpoint with a control channel: messages by SEND through registered buffers, a queue
 * of received ones, and a probe that notices a dead peer while nothing else is on the way.
 */
import {
  CompletionFlags,
  type ConnectionEvent,
  DatDtoStatus,
  DatEventNumber,
  type DtoCompletionEvent,
  type Ep,
  type EpAttributeOptions,
  type Ia,
  type Lmr,
  type LmrSegment,
  type Pz,
  type RemoteSegment,
  nameOf,
} from 'dapl';
import { TransferFailure } from './failure.js';
import { decode, encode, type Message, MESSAGE_BYTES } from './messages.js';

const BUFFERS = 64;
/** Cookies: receives are 0 to BUFFERS - 1, sends BUFFERS to 2 * BUFFERS - 1. */
const WRITE_COOKIE = 2 * BUFFERS;
const PROBE_COOKIE = WRITE_COOKIE + 1;
const PROBE_EVERY_MS = 500;
/** How long a channel that stops may take to tell the peer. */
const GOODBYE_MS = 1500;

/**
 * Short timeouts, so that a silent peer shows within three seconds: 4.096 us * 2^13 = 34 ms for an
 * ACK at the accepting side, 134 ms at the connecting one (which adds the peer's ACK delay), and
 * five retries that back off to four times that. A killed process shows sooner, by ICMP. A peer
 * without a posted receive is waited for six times 82 ms.
 */
export const EP_ATTRIBUTES: EpAttributeOptions = {
  maxRecvDtos: BUFFERS,
  maxRequestDtos: 4 * BUFFERS,
  transport: { ackTimeout: 13, retryCount: 5, rnrRetryCount: 6, minRnrTimer: 26 },
};

export class Channel {
  private readonly receives: LmrSegment[];
  private readonly sends: LmrSegment[];
  private readonly freeSends: number[] = [];
  private readonly waitingSends: Message[] = [];
  private readonly received: Message[] = [];
  private waiter: { resolve: (m: Message) => void; reject: (e: Error) => void } | undefined;
  private failure: TransferFailure | undefined;
  private readonly probe: NodeJS.Timeout;
  private probing = false;
  /** The first status that says why the connection broke. */
  private brokenBy: DatDtoStatus | undefined;
  private readonly up: Promise<void>;
  private settleUp!: { resolve: () => void; reject: (e: Error) => void };
  private readonly over: Promise<void>;
  private settleOver!: () => void;

  /** Posts the receives, so that the endpoint may connect or be used to accept. */
  constructor(
    ia: Ia,
    pz: Pz,
    readonly ep: Ep,
    private readonly peer: string,
  ) {
    const memory: Lmr = ia.allocate(2 * BUFFERS * MESSAGE_BYTES, { pz });
    const segment = (i: number): LmrSegment => memory.segment(i * MESSAGE_BYTES, MESSAGE_BYTES);
    this.receives = Array.from({ length: BUFFERS }, (_, i) => segment(i));
    this.sends = Array.from({ length: BUFFERS }, (_, i) => segment(BUFFERS + i));
    this.up = new Promise((resolve, reject) => {
      this.settleUp = { resolve, reject };
    });
    this.up.catch(() => undefined);
    this.over = new Promise((resolve) => {
      this.settleOver = resolve;
    });
    for (let i = 0; i < BUFFERS; i++) {
      this.freeSends.push(i);
      ep.postRecv(this.receives[i]!, i);
    }
    ep.connection$.subscribe((event) => this.onConnection(event));
    ep.completions$.subscribe((event) => {
      if (event.type === 'dto') this.onCompletion(event);
    });
    this.probe = setInterval(() => this.probePeer(), PROBE_EVERY_MS);
  }

  /** Resolves when the connection stands. @throws TransferFailure when it does not come about */
  established(): Promise<void> {
    return this.up;
  }

  /** Sends a message, after those that wait for a free buffer. */
  send(message: Message): void {
    if (this.failure || this.ep.state !== 'CONNECTED') return;
    const buffer = this.freeSends.pop();
    if (buffer === undefined) {
      this.waitingSends.push(message);
      return;
    }
    const segment = this.sends[buffer]!;
    segment.set(segment.lmr.lengthBytes / 2 + buffer * MESSAGE_BYTES, MESSAGE_BYTES);
    const length = encode(message, segment.bytes);
    segment.set(segment.lmr.lengthBytes / 2 + buffer * MESSAGE_BYTES, length);
    this.ep.postSend(segment, BUFFERS + buffer);
  }

  /** Writes into the peer's memory, ahead of every later message. A failure ends the channel. */
  write(segment: LmrSegment, remote: RemoteSegment): void {
    if (this.failure || this.ep.state !== 'CONNECTED') return;
    this.ep.postRdmaWrite(segment, WRITE_COOKIE, remote, CompletionFlags.SUPPRESS);
  }

  /**
   * The next message.
   * @throws TransferFailure when the channel ends first, or the peer says stop
   */
  receive(): Promise<Message> {
    const message = this.received.shift();
    if (message) return Promise.resolve(message);
    if (this.failure) return Promise.reject(this.failure);
    return new Promise((resolve, reject) => {
      this.waiter = { resolve, reject };
    });
  }

  /** Like `receive`, for the one type that may come now. */
  async expect<T extends Message['type']>(type: T): Promise<Extract<Message, { type: T }>> {
    const message = await this.receive();
    if (message.type === type) return message as Extract<Message, { type: T }>;
    throw new TransferFailure(`The peer sent "${message.type}" where "${type}" was due`);
  }

  /** Disconnects when all that was posted has gone out; resolves when the connection has ended. */
  async finish(): Promise<void> {
    if (this.failure === undefined) this.ep.disconnect('graceful');
    await this.ended();
  }

  /** Resolves when nothing more comes: the peer has disconnected, or the connection broke. */
  async ended(): Promise<void> {
    while (this.failure === undefined) await this.receive().catch(() => undefined);
  }

  /** Ends the channel from this side: pending calls fail with `failure`. */
  fail(failure: TransferFailure): void {
    if (this.failure) return;
    this.failure = failure;
    clearInterval(this.probe);
    this.settleUp.reject(failure);
    this.waiter?.reject(failure);
    this.waiter = undefined;
  }

  /** Tells the peer why, and disconnects once that has been sent. */
  stop(failure: TransferFailure): void {
    if (this.failure) return;
    this.send({ type: 'stop', reason: failure.what });
    this.fail(failure);
  }

  /** Lets go of the connection; what was sent before has a moment to arrive. */
  async close(): Promise<void> {
    clearInterval(this.probe);
    const { state } = this.ep;
    if (state === 'CONNECTED') this.ep.disconnect('graceful');
    else if (state !== 'DISCONNECT_PENDING') return;
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise((resolve) => (timer = setTimeout(resolve, GOODBYE_MS)));
    await Promise.race([this.over, late]);
    clearTimeout(timer);
  }

  private onConnection(event: ConnectionEvent): void {
    if (event.number === DatEventNumber.ESTABLISHED) {
      this.settleUp.resolve();
      return;
    }
    this.settleOver();
    this.fail(new TransferFailure(this.endOf(event), { byPeer: true }));
  }

  /** What an event other than ESTABLISHED means. */
  private endOf(event: ConnectionEvent): string {
    const { peer } = this;
    const reason = event.reason ?? nameOf(DatEventNumber, event.number);
    switch (event.number) {
      case DatEventNumber.DISCONNECTED:
        return `${peer} has disconnected`;
      case DatEventNumber.PEER_REJECTED: {
        const why = new TextDecoder().decode(event.privateData).replaceAll('\0', '');
        return `${peer} refused the connection: ${why || 'no reason given'}`;
      }
      case DatEventNumber.NON_PEER_REJECTED:
        return `Nobody listens on ${peer}`;
      case DatEventNumber.BROKEN: {
        const { brokenBy } = this;
        if (brokenBy === DatDtoStatus.TRANSPORT) return `${peer} does not answer any more`;
        if (brokenBy === DatDtoStatus.RECEIVER_NOT_READY) return `${peer} takes no more messages`;
        const status = brokenBy && nameOf(DatDtoStatus, brokenBy).toLowerCase();
        return `The connection to ${peer} broke: ${status ?? reason}`;
      }
      default:
        return `${peer} cannot be reached: ${reason}`;
    }
  }

  private onCompletion(event: DtoCompletionEvent): void {
    const { cookie, status } = event;
    if (status !== DatDtoStatus.SUCCESS) {
      // BROKEN or DISCONNECTED is on its way, and ends the channel.
      if (status !== DatDtoStatus.FLUSHED) this.brokenBy ??= status;
      return;
    }
    if (cookie < BUFFERS) this.onReceive(cookie, event.transferredLength);
    else if (cookie < 2 * BUFFERS) this.onSent(cookie - BUFFERS);
    else if (cookie === PROBE_COOKIE) this.probing = false;
  }

  private onSent(buffer: number): void {
    this.freeSends.push(buffer);
    const next = this.waitingSends.shift();
    if (next) this.send(next);
  }

  private onReceive(buffer: number, length: number): void {
    const segment = this.receives[buffer]!;
    let message: Message;
    try {
      message = decode(segment.bytes.subarray(0, length));
    } catch (cause) {
      this.stop(new TransferFailure(`${this.peer} does not speak this protocol`, { cause }));
      return;
    }
    if (this.ep.state === 'CONNECTED') this.ep.postRecv(segment, buffer);
    if (message.type === 'stop') {
      const what = `${this.peer} stopped: ${message.reason}`;
      this.fail(new TransferFailure(what, { byPeer: true }));
    } else if (this.waiter) {
      this.waiter.resolve(message);
      this.waiter = undefined;
    } else this.received.push(message);
  }

  /** A write of no bytes needs no key and no memory, but an ACK: a dead peer fails it. */
  private probePeer(): void {
    if (this.probing || this.ep.state !== 'CONNECTED') return;
    this.probing = true;
    this.ep.postRdmaWrite([], PROBE_COOKIE, { address: 0n, rmrContext: 0 });
  }
}
