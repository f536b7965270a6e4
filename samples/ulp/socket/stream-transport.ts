/**
 * Contract between a byte-stream protocol over RDMA (rsockets, SDP) and the socket class. The
 * protocol has the credits, the registered memory and the connection; the socket class has Node's
 * streams, events and error codes, and knows no protocol.
 *
 * Calls may be made from within any callback, and callbacks may come from within any call but
 * `peek`, `connect` and `listen`.
 */
import type { StreamError } from './stream-error.js';

/** Address of one end of a stream. */
export interface StreamAddress {
  /** Numeric, IPv4 or IPv6. */
  readonly address: string;
  /** 1 to 65535. */
  readonly port: number;
}

/** Events of a stream. */
export interface ByteStreamEvents {
  /** Bytes have come, or `hasEnded` has become true. It may come without need, too. */
  onReadable(): void;
  /**
   * The stream is over, once and as the last: `close` or `abort` is done, or the connection broke.
   * @param error why it broke; undefined after `close` and `abort`
   */
  onClose(error?: StreamError): void;
}

/** A write has been taken, or never will be. */
export type WriteDone = (error?: StreamError) => void;

/** A connection of a byte-stream protocol. */
export interface ByteStream {
  readonly local: StreamAddress;
  readonly remote: StreamAddress;

  /** Called once. Nothing is told before; what has come until then is told from within. */
  start(events: ByteStreamEvents): void;

  /**
   * Takes bytes, in order, as fast as credits of the peer and room in registered memory allow: each
   * is copied once, or read by the peer from where it is. `done` is called once: when all have been
   * taken, and the memory of `chunks` may be used for other things; or with EPIPE (this side or the
   * peer takes no more), ECONNRESET and so on. It may be called from within. One write at a time:
   * the next is made when this one is done, or from within `done`.
   * @param chunks not empty in all; stay as they are until `done`
   */
  write(chunks: readonly Uint8Array[], done: WriteDone): void;

  /** Bytes of all writes that have been taken so far, those of a write under way too. */
  readonly takenBytes: number;

  /**
   * The oldest bytes that have come and were not consumed, in registered memory: a view that stays
   * as it is until `consume`, `close` or `abort`. Undefined when there are none. What has come
   * before the peer's end, or before the connection broke, is there to be read after it.
   */
  peek(): Uint8Array | undefined;

  /**
   * The first `bytes` of what `peek` gave have been read: their memory goes back to the peer as the
   * protocol sees fit. What nothing consumes holds the peer back, and takes no more memory.
   * @param bytes 1 to the length of the view
   */
  consume(bytes: number): void;

  /** The peer sends no more, and all that came has been consumed. */
  readonly hasEnded: boolean;

  /**
   * Sends no more: the peer reads an end behind what has been written. Reading goes on. `done` is
   * called once, as that of `write`, when the end is on its way behind all bytes. No write is under
   * way; none is made later. Called once.
   */
  shutdown(done: WriteDone): void;

  /**
   * Ends both directions in order: what has been taken is sent before, for a bounded time; then
   * `onClose`. Bytes that have not been read are dropped. Again, or after `onClose`: no-op.
   */
  close(): void;

  /** Ends it at once: the peer reads ECONNRESET where the protocol can say so. Then `onClose`. */
  abort(): void;

  /**
   * Asks an idle peer for a sign of life.
   * @param intervalMs 1 on; 0 for never
   */
  setKeepAlive(intervalMs: number): void;

  /** The stream keeps the process alive: the default. */
  ref(): void;
  /** It does not, as `unref` of node:net. */
  unref(): void;
}

export interface StreamConnectOptions {
  /** Numeric, IPv4 or IPv6. */
  readonly address: string;
  /** 1 to 65535. */
  readonly port: number;
  /** Own address, numeric. Default: as the protocol finds a way. */
  readonly localAddress?: string | undefined;
  /** Own port, 1 to 65535. Default: of the protocol's choice. */
  readonly localPort?: number | undefined;
  /** Gives up when it fires: the promise rejects with anything, and nothing is left behind. */
  readonly signal?: AbortSignal | undefined;
}

export interface StreamListenOptions {
  /** Own address, numeric. Default: that of the protocol's adapter. */
  readonly address?: string | undefined;
  /** 0 to 65535; 0 for one of the protocol's choice. */
  readonly port: number;
  /** Connections that may be in the making at a time, 1 on; further ones are refused. */
  readonly backlog: number;
  /** True to accept a peer; otherwise it is refused (ECONNREFUSED on its side). */
  admit(remote: StreamAddress, local: StreamAddress): boolean;
  /** A connection is there. `start` is called on it from within. */
  onStream(stream: ByteStream): void;
  /** The listener is over by itself (its adapter went away), once and as the last. */
  onError(error: StreamError): void;
}

export interface ByteStreamListener {
  readonly local: StreamAddress;
  /** Listens no more; connections that were given live on. Again: the same promise. */
  close(): Promise<void>;
  ref(): void;
  unref(): void;
}

/** A byte-stream protocol, over whatever adapters it has been given. */
export interface ByteStreamProtocol {
  /** `rsocket`, `sdp`: for messages and `family` of forwarders. */
  readonly name: string;
  /**
   * @throws StreamError, as a rejection: ECONNREFUSED, ETIMEDOUT, EHOSTUNREACH, ENETUNREACH,
   * EADDRNOTAVAIL (no such own address), EADDRINUSE (own port), EPROTONOSUPPORT (the peer speaks
   * another version)
   */
  connect(options: StreamConnectOptions): Promise<ByteStream>;
  /** @throws StreamError, as a rejection: EADDRINUSE, EADDRNOTAVAIL */
  listen(options: StreamListenOptions): Promise<ByteStreamListener>;
}
