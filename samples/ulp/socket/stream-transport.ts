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
  /** Bytes were received, or `hasEnded` became true. It may also be called without a change. */
  onReadable(): void;
  /**
   * The stream is over: the last call, made once, after `close`, after `abort`, or when the
   * connection broke.
   * @param error the reason that it broke; undefined after `close` and `abort`
   */
  onClose(error?: StreamError): void;
}

/** A write was taken, or never will be. */
export type WriteDone = (error?: StreamError) => void;

/** A connection of a byte-stream protocol. */
export interface ByteStream {
  readonly local: StreamAddress;
  readonly remote: StreamAddress;

  /** Starts the events; called once. Bytes received before are reported from within the call. */
  start(events: ByteStreamEvents): void;

  /**
   * Takes bytes, in order, as fast as the peer's credits and registered memory allow. Each byte is
   * copied once, or read by the peer in place. `done` is called once: after all bytes were taken,
   * when `chunks` may be reused; or with EPIPE (this side or the peer takes no more), ECONNRESET
   * and so on. It may be called from within. Only one write at a time: make the next one when this
   * one is done, or from within `done`.
   * @param chunks not empty in total; must not change until `done`
   */
  write(chunks: readonly Uint8Array[], done: WriteDone): void;

  /** Bytes of all writes that were taken so far, including a write in progress. */
  readonly takenBytes: number;

  /**
   * The oldest received bytes that were not consumed, in registered memory: a view that is valid
   * until `consume`, `close` or `abort`. Undefined if there are none. Bytes received before the
   * peer's end, or before the connection broke, can still be read.
   */
  peek(): Uint8Array | undefined;

  /**
   * Consumes the first `bytes` of the view from `peek`: their memory returns to the peer when the
   * protocol decides. Unconsumed bytes hold the peer back, and use no more memory.
   * @param bytes 1 to the length of the view
   */
  consume(bytes: number): void;

  /** True if the peer has ended sending, and everything was consumed. */
  readonly hasEnded: boolean;

  /**
   * Ends sending: the peer reads an end after all written bytes. Reading continues. `done` is
   * called once, like that of `write`, when the end was sent. Call it once, without a write in
   * progress; no write may follow.
   */
  shutdown(done: WriteDone): void;

  /**
   * Closes both directions gracefully: bytes that were taken are sent first, for a limited time;
   * then `onClose`. Unread bytes are dropped. A second call, or one after `onClose`, is a no-op.
   */
  close(): void;

  /**
   * Ends the stream immediately: the peer reads ECONNRESET if the protocol can express it. Then
   * `onClose`.
   */
  abort(): void;

  /**
   * Probes an idle peer.
   * @param intervalMs 1 on; 0 for never
   */
  setKeepAlive(intervalMs: number): void;

  /** Keeps the process alive: the default. */
  ref(): void;
  /** Lets the process exit, as `unref` of node:net. */
  unref(): void;
}

export interface StreamConnectOptions {
  /** Numeric, IPv4 or IPv6. */
  readonly address: string;
  /** 1 to 65535. */
  readonly port: number;
  /** Local address, numeric. Default: by route. */
  readonly localAddress?: string | undefined;
  /** Local port, 1 to 65535. Default: chosen by the protocol. */
  readonly localPort?: number | undefined;
  /** Cancels the attempt: the promise rejects with anything, and nothing is left open. */
  readonly signal?: AbortSignal | undefined;
}

export interface StreamListenOptions {
  /** Local address, numeric. Default: that of the protocol's adapter. */
  readonly address?: string | undefined;
  /** 0 to 65535; 0: chosen by the protocol. */
  readonly port: number;
  /** Connections that may be half open at a time, 1 on; more are refused. */
  readonly backlog: number;
  /** True to accept a peer; otherwise it is refused (ECONNREFUSED on its side). */
  admit(remote: StreamAddress, local: StreamAddress): boolean;
  /** A connection is established. Call `start` on it from within. */
  onStream(stream: ByteStream): void;
  /** The listener has ended by itself (its adapter was closed): the last call, made once. */
  onError(error: StreamError): void;
}

export interface ByteStreamListener {
  readonly local: StreamAddress;
  /** Stops listening; open connections continue. A second call returns the same promise. */
  close(): Promise<void>;
  ref(): void;
  unref(): void;
}

/** A byte-stream protocol over the adapters that it was given. */
export interface ByteStreamProtocol {
  /** `rsocket`, `sdp`: for messages and the `family` of forwarders. */
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
