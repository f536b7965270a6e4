/** RdmaServer: a server of node:net over a byte-stream protocol on RDMA. */
import { leaveUnhandled } from 'dapl/spi';
import { EventEmitter } from 'node:events';
import {
  addressesOf,
  addressInfo,
  familyOfAddress,
  isWildcard,
  type SocketAddressInfo,
} from './addresses.js';
import { listenArguments, type ListenOptions, type ListenTarget } from './arguments.js';
import { RdmaSocket, type RdmaSocketOptions } from './rdma-socket.js';
import { calling } from './socket-events.js';
import type {
  ByteStream,
  ByteStreamListener,
  ByteStreamProtocol,
  StreamAddress,
} from './stream-transport.js';

export interface RdmaServerOptions extends Omit<RdmaSocketOptions, 'signal'> {
  readonly protocol: ByteStreamProtocol;
  /** True to hand over connections paused: `socket.resume()` starts reading. */
  readonly pauseOnConnect?: boolean | undefined;
  /** Calls `setKeepAlive` on each connection. */
  readonly keepAlive?: boolean | undefined;
  readonly keepAliveInitialDelay?: number | undefined;
  /** Accepted as in node:net; has no effect, because writes are always sent immediately. */
  readonly noDelay?: boolean | undefined;
}

/** A refused connection, as passed to the `drop` event. */
export interface DropArgument {
  readonly localAddress: string;
  readonly localPort: number;
  readonly localFamily: 'IPv4' | 'IPv6';
  readonly remoteAddress: string;
  readonly remotePort: number;
  readonly remoteFamily: 'IPv4' | 'IPv6';
}

/** State of one `listen`, until `close`. */
interface Listening {
  /** Undefined until it is listening. */
  listener: ByteStreamListener | undefined;
}

/**
 * Replaces `net.Server`. Events: `listening`, `connection`, `close`, `error`, `drop`. A connection
 * beyond `maxConnections` is refused before it is established: ECONNREFUSED at the peer.
 */
export class RdmaServer extends EventEmitter {
  /** Undefined for no limit. */
  maxConnections: number | undefined = undefined;
  private connections = 0;
  private current: Listening | undefined = undefined;
  /** Number of listeners that are closing. */
  private ending = 0;
  private holdsProcess = true;

  /** @param onConnection a listener of `connection` */
  constructor(
    private readonly options: RdmaServerOptions,
    onConnection?: (socket: RdmaSocket) => void,
  ) {
    super();
    if (onConnection !== undefined) this.on('connection', onConnection);
  }

  get listening(): boolean {
    return this.current?.listener !== undefined;
  }

  /** Address that peers connect to; null when not listening. */
  address(): SocketAddressInfo | null {
    const listener = this.current?.listener;
    return listener === undefined ? null : addressInfo(listener.local);
  }

  /**
   * `([port[, host[, backlog]]][, cb])` or `(options[, cb])`, options: `port`, `host`, `backlog`,
   * `signal`. Events: `listening`, or `error` with EADDRINUSE, EADDRNOTAVAIL.
   * @throws TypeError ERR_INVALID_ARG_TYPE, RangeError ERR_SOCKET_BAD_PORT; Error
   * ERR_SERVER_ALREADY_LISTEN
   */
  listen(options: ListenOptions, onListening?: () => void): this;
  listen(port: number, host: string, backlog?: number, onListening?: () => void): this;
  listen(port: number, host: string, onListening?: () => void): this;
  listen(port: number, backlog: number, onListening?: () => void): this;
  listen(port: number, onListening?: () => void): this;
  listen(onListening?: () => void): this;
  listen(...args: readonly unknown[]): this {
    const { target, callback } = listenArguments(args);
    if (this.current !== undefined) throw alreadyListening();
    if (callback !== undefined) this.once('listening', callback);
    const listening: Listening = { listener: undefined };
    this.current = listening;
    this.open(target, listening).then(
      // Outside the promise: an error of a listener must be an exception, not a rejection.
      (listener) => process.nextTick(() => this.opened(listening, listener)),
      (error: Error) => process.nextTick(() => this.failed(listening, error)),
    );
    if (target.signal !== undefined) this.closeWith(target.signal);
    return this;
  }

  private closeWith(signal: AbortSignal): void {
    const onAbort = (): void => void this.close();
    if (signal.aborted) process.nextTick(onAbort);
    signal.addEventListener('abort', onAbort, { once: true });
    this.once('close', () => signal.removeEventListener('abort', onAbort));
  }

  private async open(target: ListenTarget, listening: Listening): Promise<ByteStreamListener> {
    const { host, port, backlog } = target;
    return this.options.protocol.listen({
      address: host === undefined || isWildcard(host) ? undefined : await firstAddressOf(host),
      port,
      backlog,
      admit: (remote, local) => this.admits(remote, local),
      onStream: (stream) => calling(() => this.accept(stream)),
      onError: (error) => calling(() => this.failed(listening, error)),
    });
  }

  private opened(listening: Listening, listener: ByteStreamListener): void {
    if (this.current !== listening) {
      leaveUnhandled(this.end(listener));
      return;
    }
    listening.listener = listener;
    if (!this.holdsProcess) listener.unref();
    this.emit('listening');
  }

  private failed(listening: Listening, error: Error): void {
    if (this.current === listening) {
      this.current = undefined;
      this.emit('error', error);
    } else if (listening.listener === undefined) {
      // It was closed before it was listening, and listening has failed.
      this.ending--;
      this.emitCloseIfDone();
    }
  }

  private get isFull(): boolean {
    return this.maxConnections !== undefined && this.connections >= this.maxConnections;
  }

  private admits(remote: StreamAddress, local: StreamAddress): boolean {
    if (!this.isFull) return true;
    calling(() => this.emit('drop', dropArgument(remote, local)));
    return false;
  }

  private accept(stream: ByteStream): void {
    // Several peers may have been admitted while one place was free.
    if (this.isFull) {
      stream.start({ onReadable: () => undefined, onClose: () => undefined });
      stream.abort();
      this.emit('drop', dropArgument(stream.remote, stream.local));
      return;
    }
    const { pauseOnConnect = false, keepAlive = false, keepAliveInitialDelay } = this.options;
    const socket = new RdmaSocket(this.options);
    this.connections++;
    socket.once('close', () => {
      this.connections--;
      if (this.current === undefined) this.emitCloseIfDone();
    });
    if (keepAlive) socket.setKeepAlive(true, keepAliveInitialDelay);
    if (pauseOnConnect) socket.pause();
    socket.adopt(stream);
    this.emit('connection', socket);
  }

  /**
   * Accepts no more connections. `close` follows when all open connections have ended, too.
   * @param callback a listener of `close`; called with ERR_SERVER_NOT_RUNNING if it was not
   * listening
   */
  close(callback?: (error?: Error) => void): this {
    const { current } = this;
    if (callback !== undefined) {
      const error = current === undefined ? notRunning() : undefined;
      this.once('close', () => callback(error));
    }
    this.current = undefined;
    if (current === undefined) {
      this.emitCloseIfDone();
      return this;
    }
    this.ending++;
    if (current.listener !== undefined) leaveUnhandled(this.end(current.listener));
    return this;
  }

  private async end(listener: ByteStreamListener): Promise<void> {
    await listener.close().catch(() => undefined);
    this.ending--;
    this.emitCloseIfDone();
  }

  private emitCloseIfDone(): void {
    if (this.current !== undefined || this.ending > 0 || this.connections > 0) return;
    process.nextTick(() => this.emit('close'));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.current === undefined) return;
    await new Promise<void>((resolve) => this.close(() => resolve()));
  }

  /** Calls back with the number of open connections. */
  getConnections(callback: (error: Error | null, count: number) => void): this {
    process.nextTick(callback, null, this.connections);
    return this;
  }

  /** Keeps the process alive while listening: the default. */
  ref(): this {
    this.holdsProcess = true;
    this.current?.listener?.ref();
    return this;
  }

  unref(): this {
    this.holdsProcess = false;
    this.current?.listener?.unref();
    return this;
  }
}

async function firstAddressOf(host: string): Promise<string> {
  const asked = { host, family: 0, hints: undefined, lookup: undefined } as const;
  const [address = host] = await addressesOf(asked, () => undefined);
  return address;
}

function dropArgument(remote: StreamAddress, local: StreamAddress): DropArgument {
  return {
    localAddress: local.address,
    localPort: local.port,
    localFamily: familyOfAddress(local.address),
    remoteAddress: remote.address,
    remotePort: remote.port,
    remoteFamily: familyOfAddress(remote.address),
  };
}

function alreadyListening(): Error {
  const message = 'Listen method has been called more than once without closing.';
  return Object.assign(new Error(message), { code: 'ERR_SERVER_ALREADY_LISTEN' });
}

function notRunning(): Error {
  return Object.assign(new Error('Server is not running.'), { code: 'ERR_SERVER_NOT_RUNNING' });
}
