/** Requests to one server, over a connection that is made again whenever it has ended. */
import { FlowError, type WaitOptions } from 'dapl/flow';
import type { Channel, ChannelOptions } from 'dapl/flow/channel';
import { checkOptions, type Kinds, kinds, leaveUnhandled } from 'dapl/spi';
import { Observable } from 'rxjs/internal/Observable';
import { type ConnectOptions, LONGEST_TIMER_MS, refusalOf } from './options.js';
import {
  checkWaits,
  RECONNECT,
  reconnect,
  type ReconnectOptions,
  type ReconnectState,
} from './reconnect.js';
import {
  breach,
  failureOf,
  FRAME,
  frameOf,
  headerOf,
  limitOf,
  REQUESTS_ID,
} from './request-frames.js';

/** Options of `new Client` beyond those of `connect`. */
export interface ClientOptions extends Omit<
  ConnectOptions,
  'maxMessageBytes' | 'privateData' | 'receives' | 'signal'
> {
  /** For each request, in milliseconds, waiting for the connection included; default 30,000. */
  readonly timeoutMs?: number;
  /** For each attempt to connect, in milliseconds; default 5000. */
  readonly connectTimeoutMs?: number;
  /** As those of `reconnect`. */
  readonly waitMs?: NonNullable<ReconnectOptions['waitMs']>;
  /** Limits of the channel: `maxMessageBytes` is that of a reply, with its header of 8 bytes. */
  readonly limits?: ChannelOptions;
}

/** The present state of a client: that of its connection, `idle` before the first request. */
export interface ClientState extends Omit<ReconnectState, 'state'> {
  readonly state: ReconnectState['state'] | 'closed' | 'idle';
}

interface Pending {
  readonly parts: readonly [header: Uint8Array, bytes: Uint8Array];
  /** Ends it: the caller hears of it, and its timer and listener are gone. */
  settle(reply: Uint8Array | Error): void;
}

const { ANYTHING, BYTES, numberFrom, optional, SIGNAL } = kinds;
const OPERATION = 'client.request';
const TIMEOUT_MS = 30_000;
const CONNECT_TIMEOUT_MS = 5000;
const CLOSE_TIMEOUT_MS = 5000;
const MOST_IDS = 2 ** 32;

/** Options that `connect` and `offerChannel` check. */
const LEFT_TO_CONNECT = {
  address: ANYTHING,
  attributes: ANYTHING,
  family: ANYTHING,
  ia: ANYTHING,
  keepAliveMs: ANYTHING,
  limits: ANYTHING,
  localAddress: ANYTHING,
  polling: ANYTHING,
  port: ANYTHING,
  provider: ANYTHING,
  pz: ANYTHING,
  requests: ANYTHING,
};
const OWN: Kinds<Pick<ClientOptions, 'connectTimeoutMs' | 'timeoutMs' | 'waitMs'>> = {
  timeoutMs: optional(numberFrom(0, Infinity)),
  connectTimeoutMs: optional(numberFrom(0, Infinity)),
  waitMs: RECONNECT.waitMs,
};
const REQUEST: Kinds<{ bytes: Uint8Array } & WaitOptions> = {
  bytes: BYTES,
  timeoutMs: OWN.timeoutMs,
  signal: optional(SIGNAL),
};

/**
 * A client of `serve`. It connects with the first request, and from then on again whenever the
 * connection has ended, until `close`. Any number of requests may be under way. A request that
 * waits for a connection is sent once there is one; a request whose connection ends is never sent
 * again, as the server may have executed it.
 */
export class Client {
  private readonly pending = new Map<number, Pending>();
  /** Requests whose handlers may run: those that were given up are among them. */
  private readonly underWay = new Set<number>();
  /** Requests that wait to be sent, in their order. */
  private readonly unsent = new Set<number>();
  /** Handlers that the server runs for this client at once. */
  private most = 0;
  private readonly stop = new AbortController();
  private readonly watchers = new Set<(state: ClientState) => void>();
  private present: ClientState = { state: 'idle', attempt: 0 };
  private running: Promise<void> | undefined;
  private channel: Channel | undefined;
  private closing: Promise<void> | undefined;
  private onSettled: (() => void) | undefined;
  private lastId = 0;

  /** @throws FlowError DAT_INVALID_PARAMETER; nothing is opened yet */
  constructor(private readonly options: ClientOptions) {
    checkOptions(options, { ...LEFT_TO_CONNECT, ...OWN }, refusalOf('Client'));
    checkWaits('Client', options.waitMs);
  }

  /** The present state, then each further one; completes when it is closed. */
  get state$(): Observable<ClientState> {
    return new Observable<ClientState>((subscriber) => {
      const tell = (state: ClientState): void => {
        subscriber.next(state);
        if (state.state === 'closed') subscriber.complete();
      };
      this.watchers.add(tell);
      tell(this.present);
      return () => this.watchers.delete(tell);
    });
  }

  /** True while it is connected, false while it is not: the present value, then each change. */
  get connected$(): Observable<boolean> {
    return new Observable<boolean>((subscriber) => {
      let last: boolean | undefined;
      return this.state$.subscribe({
        next: ({ state }) => {
          const isConnected = state === 'connected';
          if (isConnected !== last) subscriber.next((last = isConnected));
        },
        complete: () => subscriber.complete(),
      });
    });
  }

  get isConnected(): boolean {
    return this.present.state === 'connected';
  }

  /** Requests without a reply so far. */
  get pendingRequests(): number {
    return this.pending.size;
  }

  /**
   * Sends a request; resolves to the handler's reply, which belongs to the caller.
   * @param bytes must stay as they are until then
   * @param options `timeoutMs` in place of the client's. When the time is up or `signal` fires, the
   * handler's signal fires, too
   * @throws RemoteError, as a rejection, if the handler threw. FlowError: DAT_TIMEOUT_EXPIRED,
   * DAT_INTERRUPTED_CALL; DAT_LENGTH_ERROR if the server takes no message of that length;
   * DAT_CONN_ENDED, DAT_CONN_BROKEN if the connection ended before the reply: the request may have
   * been executed; DAT_CONN_CLOSED after `close`; DAT_INVALID_PARAMETER; errors of `connect` that
   * do not pass
   */
  async request(bytes: Uint8Array, options: WaitOptions = {}): Promise<Uint8Array> {
    checkOptions({ bytes, ...options }, REQUEST, refusalOf(OPERATION));
    const { timeoutMs = this.options.timeoutMs ?? TIMEOUT_MS, signal } = options;
    if (signal?.aborted === true) throw interrupted(signal);
    if (this.closing !== undefined) throw closed();
    const id = this.freeId();
    const reply = new Promise<Uint8Array>((resolve, reject) => {
      const onAbort = (): void => this.giveUp(id, interrupted(signal));
      const onTimeout = (): void => this.giveUp(id, this.timedOut(timeoutMs));
      const timer = timeoutMs > LONGEST_TIMER_MS ? undefined : setTimeout(onTimeout, timeoutMs);
      signal?.addEventListener('abort', onAbort, { once: true });
      const settle = (outcome: Uint8Array | Error): void => {
        clearTimeout(timer);
        signal?.removeEventListener('abort', onAbort);
        this.pending.delete(id);
        this.unsent.delete(id);
        if (this.pending.size === 0) this.onSettled?.();
        if (outcome instanceof Error) reject(outcome);
        else resolve(outcome);
      };
      const parts = [headerOf(FRAME.REQUEST, id), bytes] as const;
      this.pending.set(id, { parts, settle });
      this.unsent.add(id);
    });
    if (this.channel !== undefined) this.sendMore(this.channel);
    else this.running ??= this.run();
    return reply;
  }

  /**
   * Takes no more requests, waits for the replies to those under way, and ends the connection. A
   * second call returns the same promise.
   * @param options after `timeoutMs` (default 5000), or when `signal` fires, requests that are left
   * end with DAT_CONN_CLOSED
   * @throws FlowError DAT_INVALID_PARAMETER alone
   */
  close(options: WaitOptions = {}): Promise<void> {
    this.closing ??= this.end(options);
    return this.closing;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  private async end(options: WaitOptions): Promise<void> {
    const { timeoutMs: limit, signal: limits } = REQUEST;
    checkOptions(options, { timeoutMs: limit, signal: limits }, refusalOf('client.close'));
    const { timeoutMs = CLOSE_TIMEOUT_MS, signal } = options;
    if (this.pending.size > 0 && timeoutMs > 0 && signal?.aborted !== true) {
      await new Promise<void>((resolve) => {
        const timer = timeoutMs > LONGEST_TIMER_MS ? undefined : setTimeout(resolve, timeoutMs);
        signal?.addEventListener('abort', () => resolve(), { once: true });
        this.onSettled = () => {
          clearTimeout(timer);
          resolve();
        };
      });
    }
    this.stop.abort();
    this.endAll(closed());
    await this.channel?.close();
    await this.running;
    this.become({ state: 'closed', attempt: 0 });
  }

  /** Connects, and takes replies until the connection ends; again and again. */
  private async run(): Promise<void> {
    const { channel, offerChannel, peerPrivateDataOf } = await import('dapl/flow/channel');
    const { connectTimeoutMs, limits, ...rest } = this.options;
    const { signal } = this.stop;
    const onState = (state: ReconnectState): void => this.become(state);
    const timeoutMs = connectTimeoutMs ?? CONNECT_TIMEOUT_MS;
    try {
      const given = { ...rest, ...offerChannel(limits, REQUESTS_ID), timeoutMs, signal, onState };
      for await (const conn of reconnect(given)) {
        this.most = limitOf(peerPrivateDataOf(conn));
        await this.converse(channel(conn));
      }
    } catch (error) {
      const cause = error as FlowError;
      this.running = undefined;
      this.endAll(cause);
      this.become({ state: 'idle', attempt: 0, cause });
    }
  }

  /** Takes replies until the connection has ended. */
  private async converse(channel: Channel): Promise<void> {
    let ended = new FlowError('DAT_CONN_ENDED', {
      operation: OPERATION,
      message: 'the server has closed the connection',
    });
    try {
      this.channel = channel;
      this.sendMore(channel);
      for await (const message of channel) this.take(message);
    } catch (error) {
      ended = error as FlowError;
    }
    this.channel = undefined;
    const lost = endedBefore(ended);
    for (const id of this.underWay) this.pending.get(id)?.settle(lost);
    this.underWay.clear();
    // A peer that breaks the protocol is not heard further.
    await channel.close({ timeoutMs: 0 });
  }

  /** Sends what waits, as far as the server takes it. */
  private sendMore(channel: Channel): void {
    for (const id of this.unsent) {
      if (this.underWay.size >= this.most) return;
      this.unsent.delete(id);
      this.underWay.add(id);
      // When the connection has ended, its end tells it better.
      channel.send(this.pending.get(id)!.parts).catch((error: unknown) => {
        if (!channel.isOpen) return;
        this.underWay.delete(id);
        this.pending.get(id)?.settle(error as Error);
        this.sendMore(channel);
      });
    }
  }

  /** @throws FlowError DAT_CONN_BROKEN */
  private take(message: Uint8Array): void {
    const { kind, id, body } = frameOf(message);
    if (kind !== FRAME.REPLY && kind !== FRAME.FAILURE) throw breach(`a frame of kind ${kind}`);
    const outcome = kind === FRAME.REPLY ? body : failureOf(body);
    if (!this.underWay.delete(id)) throw breach(`a reply to request ${id}, which is not under way`);
    // It may have been given up meanwhile.
    this.pending.get(id)?.settle(outcome);
    if (this.channel !== undefined) this.sendMore(this.channel);
  }

  /** The caller waits no more; the handler is told so. */
  private giveUp(id: number, error: FlowError): void {
    const pending = this.pending.get(id);
    const { channel } = this;
    if (pending === undefined) return;
    if (this.underWay.has(id) && channel?.isOpen) {
      leaveUnhandled(channel.send(headerOf(FRAME.CANCEL, id)).catch(() => undefined));
    }
    pending.settle(error);
  }

  private endAll(error: FlowError): void {
    for (const pending of [...this.pending.values()]) pending.settle(error);
  }

  /** A number that no request under way has. */
  private freeId(): number {
    do this.lastId = (this.lastId + 1) % MOST_IDS;
    while (this.pending.has(this.lastId) || this.underWay.has(this.lastId));
    return this.lastId;
  }

  private become(state: ClientState): void {
    this.present = state;
    for (const tell of [...this.watchers]) tell(state);
  }

  private timedOut(timeoutMs: number): FlowError {
    const { state, cause } = this.present;
    const why = cause === undefined ? '' : `: ${cause.message}`;
    const message = `no reply within ${timeoutMs} ms; the client is ${state}${why}`;
    return new FlowError('DAT_TIMEOUT_EXPIRED', {
      operation: OPERATION,
      message,
      value: timeoutMs,
    });
  }
}

/** For the requests that a connection had taken. */
function endedBefore(cause: FlowError): FlowError {
  const message = `no reply, and the request may have been executed: ${cause.message}`;
  const { code, reason } = cause;
  return new FlowError(code, { operation: OPERATION, message, reason, cause });
}

function interrupted(signal: AbortSignal | undefined): FlowError {
  const message = 'its AbortSignal was aborted';
  const cause: unknown = signal?.reason;
  return new FlowError('DAT_INTERRUPTED_CALL', { operation: OPERATION, message, cause });
}

function closed(): FlowError {
  const message = 'the client has been closed';
  return new FlowError('DAT_CONN_CLOSED', { operation: OPERATION, message });
}
