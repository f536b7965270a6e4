/**
 * Unix sockets of whole messages with abstract names, by the native code that addons carry
 * (native/unix_socket.cc): how processes of one host find each other and hand over descriptors,
 * which Node.js has no calls for. Nothing blocks; nothing keeps the process alive.
 */

/**
 * Longest message, in bytes, and most descriptors that come with one. It has room for whatever a
 * datagram of UDP holds, and 32 bytes before that.
 */
export const UNIX_MESSAGE = { BYTES: 65_600, DESCRIPTORS: 16 } as const;

export interface UnixMessage {
  readonly bytes: Uint8Array;
  /** Open descriptors, which are the taker's to close. */
  readonly descriptors: readonly number[];
}

export interface UnixIdentity {
  /** 0 for a process of another PID namespace. */
  readonly pid: number;
  readonly uid: number;
  /** True for our effective user; never for users that are not mapped into our namespace. */
  readonly isOwnUser: boolean;
}

export interface UnixSocket {
  /**
   * Sends a message of 1 to 65,600 bytes with up to 16 descriptors, which stay ours.
   * @returns false while the peer's queue is full
   * @throws Error with the `code` of the system: EPIPE when the peer is gone, EMSGSIZE
   */
  send(bytes: Uint8Array, descriptors: readonly number[]): boolean;
  /**
   * @returns undefined while nothing waits, null at the end
   * @throws Error with `code` EMSGSIZE for a message beyond the limits: it is lost, the descriptors
   * closed
   */
  receive(): UnixMessage | undefined | null;
  /**
   * As `receive`, but the descriptors are the thread's: `closeDescriptor` of the addon closes them,
   * or the thread's end, which a worker comes to at any moment when it is terminated.
   */
  take(): UnixMessage | undefined | null;
  /** Identity of the process that connected or listened, as the system reports it. */
  identity(): UnixIdentity;
  /** Called from the event loop while something waits, or the end. */
  watch(onReadable: () => void): void;
  /** Idempotent. */
  close(): void;
}

export interface UnixListener {
  /** @returns undefined while nothing waits */
  accept(): UnixSocket | undefined;
  watch(onReadable: () => void): void;
  close(): void;
}

/**
 * The part of an addon for Unix sockets. A name has 1 to 107 bytes, and belongs to a network
 * namespace.
 */
export interface UnixSockets {
  /** @throws Error with `code` EADDRINUSE and others of bind(2) */
  listenUnix(name: string, backlog: number): UnixListener;
  /** @throws Error with `code` ECONNREFUSED where nothing listens, EAGAIN where too many wait */
  connectUnix(name: string): UnixSocket;
}
