/** A connection of SDP as a byte stream: session, endpoint and memory put together. */
import type { ConnectionEvent, Cr, Ia } from 'dapl';
import {
  type ByteStream,
  type ByteStreamEvents,
  type StreamAddress,
  StreamError,
  type StreamErrorCode,
  type WriteDone,
} from '../../socket/index.js';
import type { Opening, YoungStream } from '../../socket/over-dat/index.js';
import {
  type Area,
  configOf,
  type Exposed,
  type Failure,
  type Outgoing,
  Session,
  type SessionConfig,
  type SessionHost,
} from '../session/index.js';
import {
  type Advert,
  emitHead,
  headBytes,
  type Hello,
  type HelloAck,
  type Mode,
} from '../wire/index.js';
import { Adapter } from './adapter.js';
import { Areas, type Piece } from './areas.js';
import { errorOf, errorOfEnd, Link, type LinkEvents } from './link.js';
import { expose, register } from './exposed.js';
import { limitsOf, type SdpPlan, sendBytesOf } from './options.js';
import { agreeTo, refusalIn } from './hellos.js';
import type { TapEvent } from './tap.js';

type State =
  /** The peer has not answered yet. */
  | 'opening'
  | 'open'
  /** The session is over; the endpoint may still have to tell the peer. */
  | 'over'
  | 'ended';

/** Size of buffers for messages without a payload. */
const HEAD_BYTES = 64;

/** Modes of the two halves of a connection. */
export interface SdpModes {
  readonly sending: Mode;
  readonly receiving: Mode;
}

/** Made by `sdp(...)`: `connect`, and `onStream` of a listener. */
export class SdpStream implements ByteStream, YoungStream, SessionHost, LinkEvents {
  /**
   * Receives each byte that the peer sends as urgent, when it arrives; the byte is not in the
   * stream.
   */
  urgent: ((byte: number) => void) | undefined = undefined;
  /** @internal called when its endpoint is gone */
  onEnded: (() => void) | undefined = undefined;
  private state: State = 'opening';
  private readonly link: Link;
  private readonly areas: Areas;
  private session: Session | undefined = undefined;
  private sendBytes = 0;
  private events: ByteStreamEvents | undefined = undefined;
  private opening: Opening | undefined;
  private isClosed = false;
  private isCut = false;
  private isToldClose = false;
  /** The error that broke the connection. */
  private broken: StreamError | undefined = undefined;
  /** The endpoint's reason for the end of the connection. */
  private ending: StreamError | undefined = undefined;
  /** Bytes that were received and not read when the memory was freed. */
  private readonly rest: Uint8Array[] = [];
  private hasNews = false;
  private cancelTimer: (() => void) | undefined = undefined;
  private timerAt = Infinity;

  /** @internal @throws DatError, FlowError if memory or an endpoint cannot be created */
  static on(
    ia: Ia,
    plan: SdpPlan,
    local: StreamAddress,
    remote: StreamAddress,
    receiveBytes: number,
    opening: Opening,
  ): SdpStream {
    const adapter = Adapter.join(ia);
    try {
      return new SdpStream(adapter, plan, local, remote, receiveBytes, opening);
    } catch (error) {
      adapter.leave();
      throw error;
    }
  }

  private constructor(
    private readonly adapter: Adapter,
    private readonly plan: SdpPlan,
    readonly local: StreamAddress,
    readonly remote: StreamAddress,
    private readonly receiveBytes: number,
    opening: Opening,
  ) {
    this.opening = opening;
    this.link = new Link(adapter, plan, receiveBytes, this);
    const areaBytes = Math.min(plan.areaBytes, this.link.maxRdmaBytes);
    this.areas = new Areas(adapter, plan.areas, areaBytes);
    this.tell('sent', { kind: 'receivesPosted', count: plan.receives });
  }

  /** @internal sends the connection request */
  dial(serviceId: bigint, hello: Uint8Array): void {
    this.tell('sent', { kind: 'message', bytes: hello });
    this.attempt(() => this.link.connect(this.remote.address, serviceId, hello));
  }

  /** @internal accepts the peer of this request */
  answer(cr: Cr, bytes: Uint8Array, hello: Hello, ack: Uint8Array): void {
    this.tell('arrived', { kind: 'message', bytes });
    this.tell('sent', { kind: 'message', bytes: ack });
    this.attempt(() => this.link.accept(cr, ack));
    if (this.state !== 'opening') return;
    // Messages sent now wait for the connection; received ones are acknowledged in RTR.
    this.begin({ ...hello, receiveBytes: hello.localBytes });
  }

  /** @internal gives up before it is open: no more events follow */
  giveUp(): void {
    this.opening = undefined;
    this.finish();
  }

  /** @internal refuses an answer of the peer that is no acceptable HelloAck */
  refuse(error: StreamError): void {
    this.broken = error;
    this.link.disconnect();
    this.finish();
  }

  get takenBytes(): number {
    return this.session?.takenBytes ?? 0;
  }

  get hasEnded(): boolean {
    if (this.rest.length > 0 || this.broken !== undefined) return false;
    const { session } = this;
    return session !== undefined && session.sink.isEnded && !session.sink.hasBytes;
  }

  /** The current modes of both directions. */
  get modes(): SdpModes | undefined {
    const { session } = this;
    return session && { sending: session.source.mode, receiving: session.sink.mode };
  }

  start(events: ByteStreamEvents): void {
    this.events = events;
    if (this.hasNews) this.onReadable();
    this.tellClose();
  }

  write(chunks: readonly Uint8Array[], done: WriteDone): void {
    const { session } = this;
    if (this.state !== 'open' || session === undefined || session.source.isEnding) {
      done(this.broken ?? this.error('EPIPE', 'write'));
      return;
    }
    this.run(() => session.write(chunks, (failure) => done(this.errorFor(failure, 'write'))));
  }

  /**
   * Sends an urgent byte (TCP's urgent data): the peer is told out of band; the byte keeps its
   * place after all earlier writes. No write may be in progress.
   * @param byte 0 to 255
   * @throws RangeError for another value; StreamError EPIPE if nothing can be sent any more
   */
  sendUrgent(byte: number): void {
    if (!Number.isInteger(byte) || byte < 0 || byte > 255) {
      throw new RangeError(`byte is ${String(byte)}, must be an integer 0 to 255`);
    }
    const { session } = this;
    if (this.state !== 'open' || session === undefined || session.source.isEnding) {
      throw this.broken ?? this.error('EPIPE', 'write');
    }
    this.run(() => session.sendUrgent(byte));
  }

  peek(): Uint8Array | undefined {
    if (this.isClosed) return undefined;
    return this.rest[0] ?? this.session?.sink.peek();
  }

  consume(bytes: number): void {
    const [first] = this.rest;
    if (first !== undefined) {
      if (bytes < first.length) this.rest[0] = first.subarray(bytes);
      else this.rest.shift();
      return;
    }
    const { session } = this;
    if (session !== undefined) this.run(() => session.consume(bytes));
  }

  shutdown(done: WriteDone): void {
    const { session } = this;
    if (this.state !== 'open' || session === undefined) {
      done(this.broken);
      return;
    }
    this.run(() => session.shutdown((failure) => done(this.errorFor(failure, 'shutdown'))));
  }

  close(): void {
    if (this.isClosed) return;
    this.isClosed = true;
    this.rest.length = 0;
    const { session } = this;
    if (this.state === 'open' && session !== undefined) this.run(() => session.close());
    this.tellClose();
  }

  abort(): void {
    this.isClosed = true;
    this.rest.length = 0;
    const { session } = this;
    if (this.state === 'open' && session !== undefined) this.run(() => session.abort());
    this.tellClose();
  }

  setKeepAlive(intervalMs: number): void {
    this.session?.setKeepAlive(intervalMs);
    this.arm();
  }

  ref(): void {
    this.link.ref();
  }

  unref(): void {
    this.link.unref();
  }

  // Events of the endpoint.

  /** @internal */
  onEstablished(privateData: Uint8Array): void {
    const { opening } = this;
    if (this.session === undefined) {
      try {
        this.tell('arrived', { kind: 'message', bytes: privateData });
        const ack = agreeTo(privateData);
        this.begin({ ...ack, receiveBytes: ack.actualBytes });
      } catch (error) {
        this.refuse(errorOf(error, { syscall: 'connect', ...this.remote }));
        return;
      }
    }
    if (this.state === 'opening') this.state = 'open';
    this.opening = undefined;
    opening?.onOpen();
    this.arm();
  }

  /** @internal */
  onMessage(slot: number, bytes: Uint8Array): void {
    this.tell('arrived', { kind: 'message', bytes });
    this.session?.receive(slot, bytes);
  }

  /** @internal */
  onRead(): void {
    this.session?.onReadDone();
  }

  /** @internal */
  onWritten(bytes: number): void {
    this.session?.onWriteDone(bytes);
  }

  /** @internal */
  onProbed(): void {
    this.session?.onProbeDone();
  }

  /** @internal */
  onDrained(): void {
    this.session?.pump();
    this.arm();
  }

  /** @internal */
  onEnd(event: ConnectionEvent | undefined): void {
    const isOrderly = event !== undefined && event.cause === undefined;
    this.tell('arrived', { kind: isOrderly ? 'disconnected' : 'killed' });
    const syscall = this.state === 'opening' ? 'connect' : 'read';
    const error = errorOfEnd(event, { syscall, ...this.remote });
    if (this.state === 'opening') {
      this.broken = refusalIn(event, this.remote) ?? error;
    } else if (this.state === 'open') {
      this.ending = error;
      this.session?.onDisconnected(error.message);
    }
    this.finish();
  }

  // Requests of the session.

  /** @internal */
  now(): number {
    return this.plan.time.now();
  }

  /** @internal */
  get requestsFree(): number {
    return this.link.requestsFree;
  }

  /** @internal */
  post({ body, sequence, payload, payloadBytes, isSolicited }: Outgoing): void {
    const total = headBytes(body.mid) + payloadBytes;
    const lease = this.adapter.take(total <= HEAD_BYTES ? HEAD_BYTES : this.sendBytes);
    const { bytes } = lease;
    let at = emitHead(bytes, body, sequence, payloadBytes);
    for (const piece of payload) {
      bytes.set(piece, at);
      at += piece.length;
    }
    this.tell('sent', { kind: 'message', bytes: bytes.subarray(0, total) });
    this.link.send(lease, total, isSolicited);
  }

  /** @internal */
  repost(slot: number, bytes: number): void {
    this.link.postReceive(slot, bytes);
    this.tell('sent', { kind: 'receivesPosted', count: 1 });
  }

  /** @internal */
  exposeSource(bytes: Uint8Array): Exposed | undefined {
    return expose(this.adapter, bytes, 'source');
  }

  /** @internal */
  takeArea(): Area | undefined {
    return this.areas.take();
  }

  /** @internal */
  rdmaRead(area: Area, length: number, { address, rkey }: Pick<Advert, 'rkey' | 'address'>): void {
    this.tell('sent', { kind: 'rdmaRead', length, remoteAddress: address, rkey });
    this.link.read(area as Piece, length, { address, rmrContext: rkey });
  }

  /** @internal */
  rdmaWrite(bytes: Uint8Array, { address, rkey }: Pick<Advert, 'rkey' | 'address'>): boolean {
    if (bytes.length > this.link.maxRdmaBytes) return false;
    const lmr = register(this.adapter, bytes, 'own');
    if (lmr === undefined) return false;
    this.tell('sent', { kind: 'rdmaWrite', length: bytes.length, remoteAddress: address, rkey });
    this.link.write(lmr, { address, rmrContext: rkey });
    return true;
  }

  /** @internal */
  probe(): void {
    this.link.probe();
  }

  /** @internal */
  disconnect(): void {
    this.link.disconnect();
  }

  /** @internal */
  cut(): void {
    this.isCut = true;
    this.link.cut();
  }

  /** @internal */
  onReadable(): void {
    this.hasNews = true;
    if (this.events === undefined || this.isClosed) return;
    this.hasNews = false;
    this.events.onReadable();
  }

  /** @internal */
  onUrgent(byte: number): void {
    this.urgent?.(byte);
  }

  /** @internal the session is over: the endpoint tells the peer, for a limited time */
  onOver(failure?: Failure): void {
    const why = this.ending ?? this.errorFor(failure, 'read');
    if (failure !== undefined) this.broken ??= why;
    if (this.state === 'open' || this.state === 'opening') this.state = 'over';
    this.keepRest();
    this.setTimer(this.isCut ? this.now() : this.now() + this.plan.closeTimeoutMs);
    this.tellClose();
  }

  private begin(
    peer: Pick<Hello | HelloAck, 'bufs' | 'maxAdverts'> & { receiveBytes: number },
  ): void {
    const config: SessionConfig = configOf(limitsOf(this.plan), this.receiveBytes, peer);
    this.sendBytes = sendBytesOf(this.plan, peer.receiveBytes);
    const session = new Session(this, config);
    this.session = session;
    if (this.state === 'opening') this.run(() => session.pump());
  }

  private tell(phase: 'sent' | 'arrived', event: TapEvent): void {
    const { tap } = this.plan;
    if (tap === undefined) return;
    const copy = event.kind === 'message' ? { ...event, bytes: event.bytes.slice() } : event;
    tap(phase, copy, `${this.local.address}:${this.local.port}`);
  }

  private attempt(call: () => void): void {
    try {
      call();
    } catch (error) {
      this.broken = errorOf(error, { syscall: 'connect', ...this.remote });
      this.finish();
    }
  }

  /** Runs a call; all that the session posts in it leaves with one doorbell. */
  private run(work: () => void): void {
    try {
      this.link.burst(work);
    } catch (error) {
      // If the connection has ended, its event follows.
      if (this.link.ep.isFreed || this.link.ep.state !== 'CONNECTED') return;
      throw error;
    }
    this.arm();
  }

  private arm(): void {
    const at = this.session?.deadline ?? Infinity;
    if (this.state === 'open' && at < this.timerAt) this.setTimer(at);
  }

  /** Sets the timer. A timer may fire early: then the due work is checked. */
  private setTimer(at: number): void {
    this.cancelTimer?.();
    this.timerAt = at;
    const { time } = this.plan;
    this.cancelTimer = time.after(Math.max(1, Math.ceil(at - time.now())), () => {
      this.cancelTimer = undefined;
      this.timerAt = Infinity;
      if (this.state === 'over') this.finish();
      const { session } = this;
      if (this.state === 'open' && session !== undefined) this.run(() => session.tick());
    });
  }

  private error(code: StreamErrorCode, syscall: string, detail?: string): StreamError {
    return new StreamError(code, { syscall, detail, ...this.remote });
  }

  private errorFor(failure: Failure | undefined, syscall: string): StreamError | undefined {
    if (failure === undefined) return undefined;
    return this.broken ?? this.error(failure.code, syscall, failure.detail);
  }

  private tellClose(): void {
    if (this.events === undefined || this.isToldClose) return;
    const isOver = this.state === 'over' || this.state === 'ended';
    // If both sides have ended gracefully, report that only after the consumer has closed, too.
    if (!isOver || !(this.isClosed || this.broken !== undefined)) return;
    this.isToldClose = true;
    this.events.onClose(this.isClosed ? undefined : this.broken);
  }

  /** Ends the endpoint, once, and frees its resources. */
  private finish(): void {
    if (this.state === 'ended') return;
    const { opening, broken, state } = this;
    this.keepRest();
    this.state = 'ended';
    this.cancelTimer?.();
    this.cancelTimer = undefined;
    this.link.free();
    this.adapter.leave();
    this.onEnded?.();
    this.opening = undefined;
    if (state === 'opening') {
      if (broken !== undefined) opening?.onFailure(broken);
      return;
    }
    this.tellClose();
  }

  /** Copies unread bytes, so that they can be read after the memory is freed. */
  private keepRest(): void {
    const sink = this.session?.sink;
    if (sink === undefined) return;
    for (let bytes = sink.peek(); bytes !== undefined; bytes = sink.peek()) {
      if (!this.isClosed) this.rest.push(bytes.slice());
      sink.consume(bytes.length);
    }
  }
}
