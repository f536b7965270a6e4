/** A listener. Its adapter stays open until it and all connections that it accepted are closed. */
import type { Ia, ServicePoint } from 'dapl';
import {
  type Connection,
  iterate,
  type Listener as FlowListener,
  type WaitOptions,
} from 'dapl/flow';
import { leaveUnhandled } from 'dapl/spi';
import type { Lease } from './adapters.js';

/** Made by `listen`. It keeps the process alive until it is closed, unless `unref()`. */
export class Listener implements AsyncIterable<Connection> {
  private closed: Promise<void> | undefined = undefined;
  private readonly onAbort = (): void => leaveUnhandled(this.close());

  /** @internal @param signal closes it */
  constructor(
    private readonly listener: FlowListener,
    private readonly lease: Lease,
    private readonly signal: AbortSignal | undefined,
  ) {
    signal?.addEventListener('abort', this.onAbort, { once: true });
  }

  /** The adapter (DAT object). */
  get ia(): Ia {
    return this.listener.ia;
  }

  /** The service point that receives the connection requests (DAT object). */
  get psp(): ServicePoint {
    return this.listener.psp;
  }

  /** IP address that peers connect to: the adapter's first. */
  get address(): string {
    return this.listener.ia.address;
  }

  /** Port that peers connect to. */
  get port(): number {
    return this.listener.port;
  }

  get isClosed(): boolean {
    return this.listener.isClosed;
  }

  /**
   * The oldest connection that was not accepted yet, or the next one.
   * @throws FlowError, as a rejection: DAT_CONN_CLOSED when it is closed; DAT_TIMEOUT_EXPIRED,
   * DAT_INTERRUPTED_CALL, without losing a connection
   */
  async accept(options?: WaitOptions): Promise<Connection> {
    // Referenced from now on: the listener may be closed before the connection is returned.
    const lease = this.lease.share();
    try {
      const conn = await this.listener.accept(options);
      endsWith(conn, lease);
      return conn;
    } catch (error) {
      leaveUnhandled(lease.release());
      throw error;
    }
  }

  /** Iterates over connections, until the listener is closed. */
  [Symbol.asyncIterator](): AsyncIterableIterator<Connection> {
    return iterate(
      () => this.accept(),
      () => this.isClosed,
    );
  }

  /**
   * Stops listening. Pending requests are refused, connections that were not accepted are closed,
   * and iterations end. Accepted connections stay open, and so does their adapter. A second call
   * returns the same promise.
   */
  close(): Promise<void> {
    this.closed ??= this.end();
    return this.closed;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  /** Keeps the process alive while listening: the default. */
  ref(): this {
    this.listener.ref();
    return this;
  }

  /** Lets the process exit while listening, as `unref` of node:net. */
  unref(): this {
    this.listener.unref();
    return this;
  }

  private async end(): Promise<void> {
    this.signal?.removeEventListener('abort', this.onAbort);
    try {
      await this.listener.close();
    } finally {
      await this.lease.release();
    }
  }
}

/** Drops a reference to an adapter when its connection has ended, in whatever way. */
export function endsWith({ closed }: Pick<Connection, 'closed'>, lease: Lease): void {
  const release = (): void => leaveUnhandled(lease.release());
  closed.then(release, release);
}
