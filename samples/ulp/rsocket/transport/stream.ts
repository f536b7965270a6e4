/** A connection of rsockets as a byte stream: session, endpoint and memory put together. */
import { type ConnectionEvent, type Cr, DatDto, type Ia, nameOf } from 'dapl';
import {
  type ByteStream,
  type ByteStreamEvents,
  type StreamAddress,
  StreamError,
  type WriteDone,
} from '../../socket/index.js';
import type { Opening, YoungStream } from '../../socket/over-dat/index.js';
import { Session } from '../session/index.js';
import {
  type ConnectionData,
  decodeConnectionData,
  encodeConnectionData,
  RsocketProtocolError,
} from '../wire/index.js';
import { Adapter } from './adapter.js';
import { errorOf, errorOfEnd, Link, type LinkEvents, Sent } from './link.js';
import { Iomap, type IomapOptions } from './iomap.js';
import { ConnectionMemory } from './memory.js';
import type { RsocketPlan } from './options.js';
import { PendingWrite } from './pending-write.js';
import { Sender } from './sender.js';

type State =
  /** The peer has not answered yet. */
  | 'opening'
  | 'open'
  /** The consumer has closed it; bytes that were taken are being sent. */
  | 'closing'
  | 'ended';

/** Made by `rsocket(...)`: `connect`, and `onStream` of a listener. */
export class RsocketStream implements ByteStream, YoungStream, LinkEvents {
  /** The local address; its port is known once the connection is established. */
  local: StreamAddress;
  private state: State = 'opening';
  private readonly memory: ConnectionMemory;
  private readonly link: Link;
  private session: Session | undefined = undefined;
  private sender: Sender | undefined = undefined;
  private events: ByteStreamEvents | undefined = undefined;
  private opening: Opening | undefined;
  /** The error that broke the connection, until it is reported. */
  private broken: StreamError | undefined = undefined;
  /** Bytes that were received and not read when the memory was freed. */
  private rest: Uint8Array | undefined = undefined;
  private hasNews = false;
  /** True if bytes were received or sent since the last tick of the keepalive. */
  private isActive = false;
  /** True within a call that posts at its end. */
  private isPosting = false;
  private ending: WriteDone | undefined = undefined;
  private cancelClose: (() => void) | undefined = undefined;
  private cancelKeepAlive: (() => void) | undefined = undefined;
  private keepAliveMs = 0;
  private readonly iomaps: Iomap[] = [];

  /**
   * @internal @throws DatError if memory or an endpoint cannot be created; then nothing is left
   * open
   */
  static on(ia: Ia, plan: RsocketPlan, remote: StreamAddress, opening: Opening): RsocketStream {
    const adapter = Adapter.join(ia);
    try {
      return new RsocketStream(adapter, plan, remote, opening);
    } catch (error) {
      adapter.leave();
      throw error;
    }
  }

  private constructor(
    private readonly adapter: Adapter,
    private readonly plan: RsocketPlan,
    readonly remote: StreamAddress,
    opening: Opening,
  ) {
    this.opening = opening;
    this.memory = new ConnectionMemory(adapter.ia, adapter.pz, plan, adapter.share);
    try {
      this.link = new Link(adapter, plan, this);
    } catch (error) {
      this.memory.free();
      throw error;
    }
    this.local = this.link.own;
  }

  /** @internal sends the connection request */
  dial(): void {
    const { address, port } = this.remote;
    this.attempt(() => this.link.connect(address, port, encodeConnectionData(this.memory.data)));
  }

  /** @internal accepts the peer of this request */
  answer(cr: Cr, peer: ConnectionData): void {
    this.prepare(peer);
    this.attempt(() => this.link.accept(cr, encodeConnectionData(this.memory.data)));
  }

  /** @internal gives up before it is open: no more events follow */
  giveUp(): void {
    this.opening = undefined;
    this.finish();
  }

  get takenBytes(): number {
    return this.sender?.takenBytes ?? 0;
  }

  get hasEnded(): boolean {
    return this.rest === undefined && this.session?.hasEnded === true && this.broken === undefined;
  }

  start(events: ByteStreamEvents): void {
    this.events = events;
    if (this.hasNews) this.tellReadable();
    if (this.state === 'ended') events.onClose(this.broken);
  }

  write(chunks: readonly Uint8Array[], done: WriteDone): void {
    this.enqueue('write', new PendingWrite(chunks, done));
  }

  peek(): Uint8Array | undefined {
    if (this.rest !== undefined) return this.rest;
    const { session, state } = this;
    if (session === undefined || session.readable === 0 || state !== 'open') return undefined;
    const { readOffset, readable } = session;
    return this.memory.buffer.bytes.subarray(readOffset, readOffset + readable);
  }

  consume(bytes: number): void {
    if (this.rest !== undefined) {
      this.rest = bytes < this.rest.length ? this.rest.subarray(bytes) : undefined;
      return;
    }
    this.session?.read(bytes);
    if (this.session?.isGrantDue === true) this.post();
  }

  shutdown(done: WriteDone): void {
    if (this.state !== 'open') {
      done(this.broken);
      return;
    }
    this.session?.shutdown();
    this.ending = done;
    this.post();
  }

  close(): void {
    this.rest = undefined;
    if (this.state !== 'open') return;
    this.state = 'closing';
    this.cancelClose = this.plan.after(this.plan.closeTimeoutMs, () => this.finish());
    this.session?.close();
    this.sender?.end(this.errorFor('EPIPE', 'write'));
    if (this.isLinkGone) this.finish();
    else this.post();
  }

  abort(): void {
    this.rest = undefined;
    if (this.state !== 'ended') this.finish();
  }

  setKeepAlive(intervalMs: number): void {
    this.keepAliveMs = intervalMs;
    this.cancelKeepAlive?.();
    this.cancelKeepAlive = undefined;
    if (intervalMs > 0 && this.state === 'open') this.keepAliveLater();
  }

  ref(): void {
    this.link.ref();
  }

  unref(): void {
    this.link.unref();
  }

  /**
   * Publishes memory to the peer (riomap), until `unmap()` or the end of the connection. The peer
   * may write there without notification.
   * @throws RangeError if the peer accepts no more areas; StreamError ENOMEM, EPIPE
   */
  iomap(options: IomapOptions): Iomap {
    const { session } = this;
    if (session === undefined || !session.isWritable) throw this.errorFor('EPIPE', 'iomap');
    const { ia, pz } = this.adapter;
    const iomap = Iomap.publish(ia, pz, session, options);
    this.iomaps.push(iomap);
    this.post();
    return iomap;
  }

  /**
   * Writes into areas that the peer has published (riowrite), after all earlier writes.
   * @param offset by the peer's naming
   * @param done like that of `write`; EIO if the peer has published no such area
   */
  iowrite(chunks: readonly Uint8Array[], offset: bigint, done: WriteDone): void {
    this.enqueue('iowrite', new PendingWrite(chunks, done, offset));
  }

  /** @internal */
  onEstablished(privateData: Uint8Array): void {
    try {
      if (this.session === undefined) this.prepare(decodeConnectionData(privateData));
    } catch (error) {
      this.fail(errorOf(error, { syscall: 'connect', ...this.remote }));
      return;
    }
    this.state = 'open';
    this.local = this.link.own;
    const { opening } = this;
    this.opening = undefined;
    opening?.onOpen();
    if (this.keepAliveMs > 0) this.setKeepAlive(this.keepAliveMs);
  }

  /** @internal */
  onMessage(immediate: number, writtenBytes: number): void {
    const { session } = this;
    if (session === undefined) return;
    this.isActive = true;
    try {
      session.receive(immediate, writtenBytes, this.memory);
    } catch (error) {
      this.fail(errorOf(error, { syscall: 'read', ...this.remote }));
      return;
    }
    this.hasNews = true;
  }

  /** @internal */
  onStrange(operation: number): void {
    const what = new RsocketProtocolError('message', nameOf(DatDto, operation), 'RECV_IMMED');
    this.fail(errorOf(what, { syscall: 'read', ...this.remote }));
  }

  /** @internal */
  onSent(kind: number): void {
    if (kind === Sent.DATA) {
      this.isActive = true;
      this.memory.staging.giveBack();
    } else this.session?.controlSent();
  }

  /** @internal */
  onDrained(): void {
    if (this.state === 'ended' || this.state === 'opening') return;
    this.isPosting = true;
    try {
      // The peer left before it took this write: fail as TCP does.
      if (this.session?.isWritable === false)
        this.sender?.end(this.errorFor('ECONNRESET', 'write'));
      if (this.hasNews && this.state === 'open') this.tellReadable();
    } finally {
      this.isPosting = false;
    }
    this.post();
  }

  /** @internal */
  onEnd(event: ConnectionEvent | undefined): void {
    if (this.state === 'ended') return;
    if (this.state === 'closing') {
      this.finish();
      return;
    }
    if (event !== undefined && this.state === 'open' && this.isSettled) {
      // Nothing was in flight any more: bytes that the peer sent before can still be read.
      this.link.free();
      this.sender?.end(this.errorFor('ECONNRESET', 'write'));
      this.endShutdown();
      if (this.hasNews) this.tellReadable();
      return;
    }
    const syscall = this.state === 'opening' ? 'connect' : 'read';
    this.fail(errorOfEnd(event, { syscall, ...this.remote }));
  }

  private get isLinkGone(): boolean {
    return this.link.ep.isFreed;
  }

  /**
   * True if both sides have ended sending, and the peer has all bytes of this side, or has left.
   */
  private get isSettled(): boolean {
    const { session, memory } = this;
    if (session?.state !== 'OVER') return false;
    return session.hasPeerLeft || memory.staging.parts === 0;
  }

  private prepare(peer: ConnectionData): void {
    const { receiveBytes, credits, iomapSlots } = this.plan;
    const { link, memory, plan } = this;
    const session = new Session({ halfBytes: receiveBytes / 2, credits, iomapSlots }, peer);
    this.session = session;
    this.sender = new Sender(session, link, memory, plan, peer);
  }

  private attempt(call: () => void): void {
    try {
      call();
    } catch (error) {
      this.fail(errorOf(error, { syscall: 'connect', ...this.remote }));
    }
  }

  private enqueue(syscall: string, write: PendingWrite): void {
    if (this.state !== 'open' || this.session?.isWritable !== true) {
      write.end(this.broken ?? this.errorFor('EPIPE', syscall));
      return;
    }
    this.sender?.add(write);
    this.post();
  }

  private tellReadable(): void {
    if (this.events === undefined) return;
    this.hasNews = false;
    this.events.onReadable();
  }

  /** Posts everything that is allowed, unless an outer call does so. */
  private post(): void {
    if (this.isPosting || this.state === 'ended' || this.sender === undefined) return;
    if (this.isLinkGone) {
      this.endShutdown();
      return;
    }
    this.isPosting = true;
    try {
      this.link.burst(this.sender.post);
    } catch (error) {
      // If the connection has ended, its event follows.
      if (this.link.ep.state === 'CONNECTED') {
        this.fail(errorOf(error, { syscall: 'write', ...this.remote }));
      }
      return;
    } finally {
      this.isPosting = false;
    }
    if (this.session?.isEnding === true) return;
    this.endShutdown();
    if (this.state === 'closing') this.link.disconnect();
  }

  private endShutdown(error?: StreamError): void {
    const { ending } = this;
    this.ending = undefined;
    ending?.(error);
  }

  private keepAliveLater(): void {
    this.isActive = false;
    this.cancelKeepAlive = this.plan.after(this.keepAliveMs, () => {
      if (this.state !== 'open' || this.isLinkGone) return;
      if (!this.isActive && this.session?.probe() === true) this.attempt(() => this.link.probe());
      this.keepAliveLater();
    });
  }

  private errorFor(code: 'EPIPE' | 'ECONNRESET', syscall: string): StreamError {
    return new StreamError(code, { syscall, ...this.remote });
  }

  /** Breaks the connection. */
  private fail(error: StreamError): void {
    if (this.state === 'ended') return;
    this.broken = error;
    this.finish();
  }

  /** Ends the stream, once: reports pending writes, frees memory, and keeps unread bytes. */
  private finish(): void {
    const { state, session, opening, broken } = this;
    this.state = 'ended';
    if (state === 'open' && session !== undefined && session.unread > 0) this.keepRest(session);
    this.cancelClose?.();
    this.cancelKeepAlive?.();
    this.link.free();
    for (const iomap of this.iomaps) iomap.unmap();
    this.memory.free();
    this.adapter.leave();
    this.opening = undefined;
    if (state === 'opening') {
      if (broken !== undefined) opening?.onFailure(broken);
      return;
    }
    const error = broken ?? this.errorFor('EPIPE', 'write');
    this.sender?.end(error);
    this.endShutdown(broken);
    this.events?.onClose(broken);
  }

  private keepRest(session: Session): void {
    const rest = new Uint8Array(session.unread);
    const { bytes } = this.memory.buffer;
    for (let at = 0; at < rest.length;) {
      const { readOffset, readable } = session;
      rest.set(bytes.subarray(readOffset, readOffset + readable), at);
      session.read(readable);
      at += readable;
    }
    this.rest = rest;
  }
}
