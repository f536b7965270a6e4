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
import { errorOf, errorOfEnd } from './errors.js';
import { Iomap, type IomapOptions } from './iomap.js';
import { Link, type LinkEvents, Sent } from './link.js';
import { ConnectionMemory } from './memory.js';
import type { RsocketPlan } from './options.js';
import { PendingWrite } from './pending-write.js';
import { Sender } from './sender.js';

type State =
  /** The peer has not answered. */
  | 'opening'
  | 'open'
  /** The consumer has closed it; what was taken leaves. */
  | 'closing'
  | 'ended';

/** Made by `rsocket(...)`: `connect`, and `onStream` of a listener. */
export class RsocketStream implements ByteStream, YoungStream, LinkEvents {
  /** The port is known when the connection is there. */
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
  /** Something has come or left since the last tick of the keepalive. */
  private isActive = false;
  /** Within a call that posts what is due at its end. */
  private isPosting = false;
  private ending: WriteDone | undefined = undefined;
  private cancelClose: (() => void) | undefined = undefined;
  private cancelKeepAlive: (() => void) | undefined = undefined;
  private keepAliveMs = 0;
  private readonly iomaps: Iomap[] = [];

  /** @internal @throws DatError where memory or an endpoint cannot be had; nothing is left then */
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

  /** @internal asks the peer */
  dial(): void {
    const { address, port } = this.remote;
    this.attempt(() => this.link.connect(address, port, encodeConnectionData(this.memory.data)));
  }

  /** @internal takes a peer that has asked with this */
  answer(cr: Cr, peer: ConnectionData): void {
    this.prepare(peer);
    this.attempt(() => this.link.accept(cr, encodeConnectionData(this.memory.data)));
  }

  /** @internal gives up before it is open: nothing is told any more */
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
   * Publishes memory to the peer (riomap), until `unmap()` or the end of the connection: the peer
   * may write there, and nothing tells when it has.
   * @throws RangeError where the peer takes no more areas; StreamError ENOMEM, EPIPE
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
   * Writes into areas that the peer has published (riowrite), behind what has been written before.
   * @param offset as the peer names it
   * @param done as that of `write`; EIO where the peer has published no such area
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
      // A write that the peer has not taken before it left: as TCP has it.
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
      // Nothing was under way any more: what the peer sent before is still to be read.
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

  /** Both sides have said that they send no more, and the peer has all of this side's, or left. */
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

  /** Posts what may be sent, unless a caller further out does. */
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
      // Where the connection has ended, the event of that is on its way.
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

  /** It is broken. */
  private fail(error: StreamError): void {
    if (this.state === 'ended') return;
    this.broken = error;
    this.finish();
  }

  /**
   * The end, once: what is under way is told, what it held goes back, what has come can be read.
   */
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
