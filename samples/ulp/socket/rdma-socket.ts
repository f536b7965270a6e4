/** RdmaSocket: a socket of node:net over a byte-stream protocol on RDMA. */
import { addAbortSignal, Duplex } from 'node:stream';
import {
  addressesOf,
  addressInfo,
  familyOfAddress,
  type OnLookup,
  type SocketAddressInfo,
} from './addresses.js';
import {
  connectArguments,
  type ConnectOptions,
  type ConnectTarget,
  refuseUnsupported,
  timeoutOf,
} from './arguments.js';
import { calling, closedBeforeConnection, endedByPeer, socketClosed } from './socket-events.js';
import { StreamError } from './stream-error.js';
import type { ByteStream, ByteStreamProtocol } from './stream-transport.js';

// The idle timeout of a socket: `setTimeout` of node:net.

/** An idle timer: it restarts with every byte, and does not keep the process alive. */
class IdleTimer {
  private timer: NodeJS.Timeout | undefined = undefined;
  private seenBytes = 0;

  /**
   * @param takenBytes of writes; if they have advanced, the socket was not idle
   * @param onIdle is called after the timeout; the timer has restarted then
   */
  constructor(
    private readonly takenBytes: () => number,
    private readonly onIdle: () => void,
  ) {}

  /** @param timeoutMs 0 for never */
  start(timeoutMs: number): void {
    clearTimeout(this.timer);
    this.seenBytes = this.takenBytes();
    this.timer = timeoutMs === 0 ? undefined : setTimeout(() => this.look(), timeoutMs).unref();
  }

  /** Restarts the timer after activity. */
  touch(): void {
    this.timer?.refresh();
  }

  stop(): void {
    clearTimeout(this.timer);
    this.timer = undefined;
  }

  private look(): void {
    this.timer?.refresh();
    const takenBytes = this.takenBytes();
    const hasMoved = takenBytes !== this.seenBytes;
    this.seenBytes = takenBytes;
    if (!hasMoved) this.onIdle();
  }
}

export interface RdmaSocketOptions {
  readonly protocol: ByteStreamProtocol;
  /** True to keep sending after the peer has ended. Default false, as in node:net. */
  readonly allowHalfOpen?: boolean | undefined;
  /** Destroys the socket when it fires: ABORT_ERR. */
  readonly signal?: AbortSignal | undefined;
  /** Unread bytes at which the peer is held back. Default 65536. */
  readonly readableHighWaterMark?: number | undefined;
  /** Bytes waiting for the protocol at which `write` returns false. Default 65536. */
  readonly writableHighWaterMark?: number | undefined;
}

/**
 * The default of node:stream is too small for a fabric: each write of that size waits for credits.
 */
const HIGH_WATER_MARK = 64 * 1024;
/** Longer views are passed in pieces, so that memory returns to the peer sooner. */
const LONGEST_CHUNK = 64 * 1024;
/** Delay of Linux before the first keepalive, for a socket that sets none. */
const DEFAULT_KEEP_ALIVE_MS = 7_200_000;

/** The callback of node:stream. */
type Done = (error?: Error | null) => void;

/** A write that waits for the connection. */
interface HeldWrite {
  readonly chunks: readonly Uint8Array[];
  readonly done: Done;
}

/**
 * Replaces `net.Socket`: same methods, events and error codes; docs/rsocket.md lists the
 * differences. `close` follows when the protocol has finished: written bytes have reached the
 * peer's device, or the connection was lost.
 */
export class RdmaSocket extends Duplex {
  /** Milliseconds until `timeout` is emitted; undefined without `setTimeout`. */
  timeout: number | undefined = undefined;
  private readonly protocol: ByteStreamProtocol;
  private stream: ByteStream | undefined = undefined;
  private attempt: AbortController | undefined = undefined;
  private held: HeldWrite | undefined = undefined;
  private writeDone: Done | undefined = undefined;
  private sendingBytes = 0;
  private sentBytes = 0;
  private readBytes = 0;
  /** True if the reader has room: `_read` was called, and no later `push` returned false. */
  private hasRoom = false;
  private isPulling = false;
  private isReset = false;
  /** True if the stream has ended by itself, or never existed. */
  private isOver = false;
  /** The error that broke the connection, until all bytes before it were read. */
  private failure: StreamError | undefined = undefined;
  private hadError = false;
  private holdsProcess = true;
  private keepAliveMs = 0;
  private readonly idle = new IdleTimer(
    () => this.stream?.takenBytes ?? 0,
    () => this.emit('timeout'),
  );
  /** One callback for all writes: there is one write at a time. */
  private readonly onWritten = (error?: StreamError): void => {
    const done = this.writeDone!;
    this.writeDone = undefined;
    if (error === undefined) this.sentBytes += this.sendingBytes;
    this.idle.touch();
    calling(done, error);
  };

  /** Creates a socket that is not connected. */
  constructor(options: RdmaSocketOptions) {
    const { protocol, allowHalfOpen = false, signal } = options;
    refuseUnsupported(options, ['fd', 'handle', 'onread']);
    super({
      allowHalfOpen,
      emitClose: false,
      readableHighWaterMark: options.readableHighWaterMark ?? HIGH_WATER_MARK,
      writableHighWaterMark: options.writableHighWaterMark ?? HIGH_WATER_MARK,
    });
    this.protocol = protocol;
    this.on('end', refuseWritesAfterEnd);
    // All fields are set by now: a signal that has fired destroys the socket immediately.
    if (signal !== undefined) addAbortSignal(signal, this);
  }

  /**
   * `(port[, host][, cb])` or `(options[, cb])`, options: `port`, `host`, `family`, `hints`,
   * `lookup`, `localAddress`, `localPort`. Events: `lookup`, `connect`, `ready`; or `error` with
   * ECONNREFUSED, ETIMEDOUT, EHOSTUNREACH, ENETUNREACH, EADDRNOTAVAIL, EPROTONOSUPPORT, or a code
   * of the resolver. A socket connects once; a destroyed one does nothing.
   * @throws TypeError ERR_INVALID_ARG_TYPE, ERR_MISSING_ARGS (no port); RangeError
   * ERR_SOCKET_BAD_PORT; Error EISCONN
   */
  connect(options: ConnectOptions, onConnect?: () => void): this;
  connect(port: number | string, host: string, onConnect?: () => void): this;
  connect(port: number | string, onConnect?: () => void): this;
  connect(...args: readonly unknown[]): this {
    const { target, callback } = connectArguments(args);
    // Its signal has fired: the error follows.
    if (this.destroyed) return this;
    if (this.attempt !== undefined || this.stream !== undefined) {
      throw Object.assign(new Error('connect EISCONN: a socket connects once'), {
        code: 'EISCONN',
        syscall: 'connect',
      });
    }
    if (callback !== undefined) this.once('connect', callback);
    this.attempt = new AbortController();
    this.idle.touch();
    connectTo(this.protocol, target, this.attempt.signal, (...of) =>
      this.emit('lookup', ...of),
    ).then(
      // Outside the promise: an error of a listener must be an exception, not a rejection.
      (stream) => process.nextTick(() => this.adopt(stream)),
      (error: Error) => this.destroy(error),
    );
    return this;
  }

  /** @internal adopts an established connection */
  adopt(stream: ByteStream): void {
    this.attempt = undefined;
    if (this.destroyed) {
      stream.start({ onReadable: () => undefined, onClose: () => undefined });
      stream.abort();
      return;
    }
    this.stream = stream;
    if (!this.holdsProcess) stream.unref();
    if (this.keepAliveMs !== 0) stream.setKeepAlive(this.keepAliveMs);
    stream.start({
      onReadable: () => calling(() => this.pull()),
      onClose: (error) => this.onStreamClose(error),
    });
    this.emit('connect');
    this.emit('ready');
    if (this.readable && !this.isPaused()) this.read(0);
    const { held } = this;
    this.held = undefined;
    if (held !== undefined) this.send(held.chunks, held.done);
  }

  /** Undefined until connected, like all addresses. */
  get localAddress(): string | undefined {
    return this.stream?.local.address;
  }

  get localPort(): number | undefined {
    return this.stream?.local.port;
  }

  get localFamily(): 'IPv4' | 'IPv6' | undefined {
    return this.stream && familyOfAddress(this.stream.local.address);
  }

  get remoteAddress(): string | undefined {
    return this.stream?.remote.address;
  }

  get remotePort(): number | undefined {
    return this.stream?.remote.port;
  }

  get remoteFamily(): 'IPv4' | 'IPv6' | undefined {
    return this.stream && familyOfAddress(this.stream.remote.address);
  }

  /** The local end; empty until connected. */
  address(): SocketAddressInfo | Record<string, never> {
    return this.stream === undefined ? {} : addressInfo(this.stream.local);
  }

  /** Bytes that were passed to the reader. */
  get bytesRead(): number {
    return this.readBytes;
  }

  /** Bytes passed to `write`, including those that still wait here. */
  get bytesWritten(): number {
    return this.sentBytes + this.writableLength;
  }

  /** True after `connect`, until the connection is established. */
  get connecting(): boolean {
    return this.attempt !== undefined && !this.destroyed;
  }

  /**
   * True if the connection is broken: earlier bytes can be read, then `error` is emitted. A program
   * that forwards the bytes and is held back need not wait for that.
   */
  get isBroken(): boolean {
    return this.failure !== undefined || this.errored !== null;
  }

  /** True until connected. */
  get pending(): boolean {
    return this.stream === undefined || this.connecting;
  }

  get readyState(): 'opening' | 'open' | 'readOnly' | 'writeOnly' | 'closed' {
    if (this.connecting) return 'opening';
    if (this.readable) return this.writable ? 'open' : 'readOnly';
    return this.writable ? 'writeOnly' : 'closed';
  }

  /**
   * Emits `timeout` after that time without activity; the socket stays open.
   * @param timeoutMs 0 for never, up to 2^31 - 1; counted from the last byte
   * @throws RangeError ERR_OUT_OF_RANGE
   */
  setTimeout(timeoutMs: number, callback?: () => void): this {
    if (this.destroyed) return this;
    this.timeout = timeoutOf(timeoutMs);
    this.idle.start(this.timeout);
    if (callback === undefined) return this;
    if (this.timeout === 0) this.off('timeout', callback);
    else this.once('timeout', callback);
    return this;
  }

  /** Accepted, without effect: writes are never delayed. */
  setNoDelay(_noDelay?: boolean): this {
    return this;
  }

  /**
   * Probes an idle peer.
   * @param initialDelayMs silence of the peer before a probe; 0 keeps the value, at first 2 hours
   */
  setKeepAlive(enable = false, initialDelayMs = 0): this {
    const delayMs = Math.floor(initialDelayMs) || this.keepAliveMs || DEFAULT_KEEP_ALIVE_MS;
    this.keepAliveMs = enable ? delayMs : 0;
    this.stream?.setKeepAlive(this.keepAliveMs);
    return this;
  }

  /** Keeps the process alive while connected: the default. */
  ref(): this {
    this.holdsProcess = true;
    this.stream?.ref();
    return this;
  }

  unref(): this {
    this.holdsProcess = false;
    this.stream?.unref();
    return this;
  }

  /** Destroys the socket after all written bytes were sent. */
  destroySoon(): void {
    if (this.writable) this.end();
    if (this.writableFinished) this.destroy();
    else this.once('finish', () => this.destroy());
  }

  /**
   * Resets the connection, like RST: the peer reads ECONNRESET if the protocol can express it.
   * Written bytes that were not sent are dropped. A connection attempt is cancelled.
   */
  resetAndDestroy(): this {
    this.isReset = true;
    const never = this.stream === undefined && !this.connecting;
    return this.destroy(never ? socketClosed() : undefined);
  }

  override read(size?: number): ReturnType<Duplex['read']> {
    if (this.failure !== undefined) process.nextTick(() => this.failWhenRead());
    return super.read(size);
  }

  override _read(): void {
    this.hasRoom = true;
    this.pull();
  }

  /** Passes received bytes on as long as the reader has room. */
  private pull(): void {
    const { stream } = this;
    if (stream === undefined || this.isPulling) return;
    this.isPulling = true;
    try {
      while (this.hasRoom && !this.destroyed) {
        const view = stream.peek();
        if (view === undefined) break;
        this.hasRoom = this.handOver(stream, view);
      }
    } finally {
      this.isPulling = false;
    }
    if (!this.hasRoom || this.destroyed || !stream.hasEnded) return;
    this.hasRoom = false;
    this.push(null);
    // The end must be reported even if nobody reads.
    this.read(0);
  }

  /** @returns true if the reader has room for more */
  private handOver(stream: ByteStream, view: Uint8Array): boolean {
    const size = Math.min(view.length, LONGEST_CHUNK);
    const chunk = Buffer.allocUnsafe(size);
    chunk.set(size === view.length ? view : view.subarray(0, size));
    stream.consume(size);
    this.readBytes += size;
    this.idle.touch();
    return this.push(chunk);
  }

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: Done): void {
    this.send([chunk], done);
  }

  override _writev(items: readonly { readonly chunk: Buffer }[], done: Done): void {
    this.send(
      items.map(({ chunk }) => chunk),
      done,
    );
  }

  private send(chunks: readonly Uint8Array[], done: Done): void {
    const { stream } = this;
    if (stream === undefined) {
      if (this.connecting) this.held = { chunks, done };
      else done(socketClosed());
      return;
    }
    const bytes = chunks.reduce((sum, { length }) => sum + length, 0);
    if (bytes === 0) {
      done();
      return;
    }
    this.idle.touch();
    this.writeDone = done;
    this.sendingBytes = bytes;
    stream.write(chunks, this.onWritten);
  }

  override _final(done: Done): void {
    const { stream } = this;
    if (stream === undefined && this.connecting) {
      this.once('connect', () => this._final(done));
      return;
    }
    if (stream === undefined || this.isOver) {
      done();
      return;
    }
    // A peer that has left needs no end: node:net ignores ENOTCONN, too.
    stream.shutdown((error) => calling(done, error?.code === 'EPIPE' ? undefined : error));
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    this.idle.stop();
    this.hadError = error !== null;
    const { stream, held, attempt } = this;
    this.held = undefined;
    attempt?.abort(error);
    held?.done(error ?? closedBeforeConnection());
    done(error);
    if (stream === undefined || this.isOver) this.emitClose();
    if (this.isReset) stream?.abort();
    else stream?.close();
  }

  private onStreamClose(error?: StreamError): void {
    this.isOver = true;
    if (this.destroyed) {
      this.emitClose();
      return;
    }
    this.failure = error;
    calling(() => this.pull());
    // The program has closed the adapter: it waits for `close`, and may never read again.
    if (error?.code === 'ECONNABORTED') this.destroy(error);
    else this.failWhenRead();
  }

  /** Reports the error of a broken connection when everything was read, as in TCP. */
  private failWhenRead(): void {
    const { failure, stream } = this;
    if (failure === undefined || this.destroyed) return;
    if (this.readableLength === 0 && stream?.peek() === undefined) this.destroy(failure);
  }

  /** Emits `close` after `error`, which node:stream emits in a later tick. */
  private emitClose(): void {
    process.nextTick(() => this.emit('close', this.hadError));
  }
}

/** Fails writes after the peer's end with EPIPE, as node:net does, rather than a stream error. */
function refuseWritesAfterEnd(this: RdmaSocket): void {
  if (this.allowHalfOpen) return;
  this.write = (_chunk: unknown, ...rest: readonly unknown[]): boolean => {
    const callback = rest.at(-1);
    const error = endedByPeer();
    if (typeof callback === 'function') process.nextTick(callback, error);
    this.destroy(error);
    return false;
  };
}

// Connects to a host: tries its addresses one after the other until one answers.

/**
 * @param signal cancels the attempt
 * @throws StreamError, an error of the resolver, or an AggregateError with the code of the first if
 * several addresses were tried, as in node:net; anything after the signal has fired
 */
async function connectTo(
  protocol: ByteStreamProtocol,
  target: ConnectTarget,
  signal: AbortSignal,
  onLookup: OnLookup,
): Promise<ByteStream> {
  const { port, localAddress, localPort } = target;
  const addresses = await addressesOf(target, onLookup);
  const errors: Error[] = [];
  for (const address of addresses) {
    signal.throwIfAborted();
    try {
      return await protocol.connect({ address, port, localAddress, localPort, signal });
    } catch (error) {
      errors.push(error as Error);
    }
  }
  throw errorOf(target, errors);
}

function errorOf({ host, port }: ConnectTarget, errors: readonly Error[]): Error {
  const [first] = errors;
  if (first === undefined) {
    const options = { syscall: 'connect', address: host, port, detail: 'it has no address' };
    return new StreamError('EHOSTUNREACH', options);
  }
  if (errors.length === 1) return first;
  const { code } = first as NodeJS.ErrnoException;
  const texts = errors.map(({ message }) => message).join('; ');
  return Object.assign(new AggregateError(errors, texts), { code });
}
