/** Answers requests of `Client`s. */
import { type Connection, FlowError, type WaitOptions } from 'dapl/flow';
import type { Channel, ChannelOptions } from 'dapl/flow/channel';
import { checkOptions, type Kinds, kinds, leaveUnhandled, mustBe } from 'dapl/spi';
import { listen } from './calls.js';
import { Deadline } from './deadline.js';
import type { Listener } from './listener.js';
import { type ListenOptions, refusalOf, WAIT } from './options.js';
import {
  breach,
  failureBytes,
  FRAME,
  frameOf,
  headerOf,
  limitBytes,
  REQUESTS_ID,
} from './request-frames.js';

/** Options of `serve` beyond those of `listen`. */
export interface ServeOptions extends Omit<
  ListenOptions,
  'answer' | 'maxMessageBytes' | 'receives'
> {
  /**
   * Handlers of one connection that run at the same time: 1 to 1,000,000, default 1000. Further
   * requests of that connection wait at the client.
   */
  readonly maxRunning?: number;
  /** Limits of the channel: `maxMessageBytes` is that of a request, with its header of 8 bytes. */
  readonly limits?: ChannelOptions;
}

/** A request, for its handler. */
export class Request {
  private controller: AbortController | undefined;

  /** @internal */
  constructor(
    /** The request, which belongs to the handler. */
    readonly bytes: Uint8Array,
    /** The address of the client. */
    readonly peer: string,
  ) {}

  /** Fires when nobody waits for the reply any more. */
  get signal(): AbortSignal {
    return (this.controller ??= new AbortController()).signal;
  }

  /** @internal */
  abort(): void {
    this.controller?.abort(
      new FlowError('DAT_INTERRUPTED_CALL', {
        operation: 'serve',
        message: 'the client waits for the reply no more',
      }),
    );
  }
}

/**
 * Makes the reply to a request. What it throws, or rejects with, reaches the client as a
 * RemoteError with its name, its message and its code.
 */
export type Handler = (request: Request) => Promise<Uint8Array> | Uint8Array;

const { ANYTHING, BYTES, FUNCTION, integer, optional } = kinds;
const MAX_RUNNING = 1000;
const CLOSE_TIMEOUT_MS = 5000;
/** For a peer that connects without a `Client`. */
const REFUSAL = new TextEncoder().encode('this port takes requests of a dapl/easy Client');

const KINDS: Kinds<ServeOptions> = {
  address: ANYTHING,
  attributes: ANYTHING,
  backlog: ANYTHING,
  family: ANYTHING,
  ia: ANYTHING,
  keepAliveMs: ANYTHING,
  limits: ANYTHING,
  maxRunning: optional(integer(1, 1_000_000)),
  polling: ANYTHING,
  port: ANYTHING,
  provider: ANYTHING,
  pz: ANYTHING,
  requests: ANYTHING,
  signal: ANYTHING,
};

/**
 * Listens, and answers each request of a `Client` by the handler. Requests of a connection run at
 * the same time, and each reply leaves when it is there.
 * @throws FlowError, as a rejection, as `listen`
 */
export async function serve(options: ServeOptions, handler: Handler): Promise<Server> {
  const operation = 'serve';
  checkOptions(options, KINDS, refusalOf(operation));
  checkOptions({ handler }, { handler: FUNCTION }, refusalOf(operation));
  // A program that only connects and listens does not need it.
  const channels = await import('dapl/flow/channel');
  const { maxRunning = MAX_RUNNING, limits, ...rest } = options;
  const { answer, ...receives } = channels.acceptChannel(limits);
  const listener = await listen({
    ...rest,
    ...receives,
    answer: (request) => {
      const given = request.privateData.subarray(channels.ANNOUNCEMENT_BYTES);
      const isClient = REQUESTS_ID.every((byte, i) => given[i] === byte);
      if (!isClient) return request.refuse(REFUSAL);
      const announcement = answer(request);
      return announcement && Buffer.concat([announcement, limitBytes(maxRunning)]);
    },
  });
  return new Server(listener, (conn) => {
    return new Conversation(conn, channels.channel(conn), handler, maxRunning);
  });
}

/** Made by `serve`. It keeps the process alive until it is closed, unless `unref()`. */
export class Server {
  private readonly conversations = new Set<Conversation>();
  private closing: Promise<void> | undefined;

  /** @internal */
  constructor(
    private readonly listener: Listener,
    private readonly converse: (conn: Connection) => Conversation,
  ) {
    leaveUnhandled(this.acceptAll());
  }

  /** IP address that clients connect to. */
  get address(): string {
    return this.listener.address;
  }

  /** Port that clients connect to. */
  get port(): number {
    return this.listener.port;
  }

  /** Clients that are connected. */
  get connections(): number {
    return this.conversations.size;
  }

  /** Handlers that run. */
  get running(): number {
    return [...this.conversations].reduce((sum, { running }) => sum + running, 0);
  }

  /**
   * Stops listening, waits for the handlers that run, sends their replies, and ends the
   * connections. A second call returns the same promise.
   * @param options after `timeoutMs` (default 5000), or when `signal` fires, connections end at
   * once, and the signals of the requests that are left fire
   * @throws FlowError DAT_INVALID_PARAMETER alone
   */
  close(options: WaitOptions = {}): Promise<void> {
    this.closing ??= this.end(options);
    return this.closing;
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

  private async acceptAll(): Promise<void> {
    for await (const conn of this.listener) {
      const conversation = this.converse(conn);
      this.conversations.add(conversation);
      leaveUnhandled(conversation.ended.then(() => this.conversations.delete(conversation)));
    }
  }

  private async end(options: WaitOptions): Promise<void> {
    checkOptions(options, WAIT, refusalOf('server.close'));
    await this.listener.close();
    const { timeoutMs = CLOSE_TIMEOUT_MS, signal } = options;
    const limits = signal === undefined ? { timeoutMs } : { timeoutMs, signal };
    await Promise.all([...this.conversations].map((each) => each.close(limits)));
  }
}

/** The requests of one client. */
class Conversation {
  readonly ended: Promise<void>;
  private readonly requests = new Map<number, Request>();
  /** Called when a request has ended, and when the connection has. */
  private waiting: (() => void)[] = [];

  private readonly peer: string;

  constructor(
    conn: Connection,
    private readonly channel: Channel,
    private readonly handler: Handler,
    private readonly maxRunning: number,
  ) {
    this.peer = conn.ep.query().remoteAddress ?? '';
    conn.closed.then(this.tell, this.tell);
    this.ended = this.takeAll();
  }

  get running(): number {
    return this.requests.size;
  }

  async close(limits: WaitOptions): Promise<void> {
    const deadline = new Deadline('server.close', limits, 'handlers run');
    const idle = this.until(() => this.running === 0);
    await deadline.during(idle, () => undefined).catch(() => undefined);
    await this.channel.close(deadline.left);
    await this.ended;
  }

  private async takeAll(): Promise<void> {
    try {
      for await (const message of this.channel) {
        this.take(message);
      }
    } catch (error) {
      // A client that is gone, or that speaks no such protocol, concerns nobody else.
      if (!FlowError.isFlowError(error)) throw error;
    }
    for (const request of this.requests.values()) request.abort();
    this.requests.clear();
    this.tell();
    await this.channel.close({ timeoutMs: 0 });
  }

  /** @throws FlowError DAT_CONN_BROKEN */
  private take(message: Uint8Array): void {
    const { kind, id, body } = frameOf(message);
    const known = this.requests.get(id);
    if (kind === FRAME.CANCEL) {
      // Its handler still runs, and counts; the reply tells the client that it has ended.
      known?.abort();
    } else if (kind === FRAME.REQUEST && this.running === this.maxRunning) {
      throw breach(`more than ${this.maxRunning} requests at once`);
    } else if (kind === FRAME.REQUEST && known === undefined) {
      const request = new Request(body, this.peer);
      this.requests.set(id, request);
      leaveUnhandled(this.answer(id, request));
    } else {
      const what = kind === FRAME.REQUEST ? `request ${id} twice` : `a frame of kind ${kind}`;
      throw breach(what);
    }
  }

  private async answer(id: number, request: Request): Promise<void> {
    let parts: readonly [Uint8Array, Uint8Array];
    try {
      const reply: unknown = await this.handler(request);
      if (!BYTES.accepts(reply)) throw new TypeError(mustBe('the reply', reply, BYTES.expected));
      parts = [headerOf(FRAME.REPLY, id), reply];
    } catch (error) {
      parts = [headerOf(FRAME.FAILURE, id), failureBytes(error)];
    }
    // The connection has ended.
    if (this.requests.get(id) !== request) return;
    // Before the reply, for the client may send a further request as soon as it has that.
    this.forget(id);
    try {
      await this.channel.send(parts);
    } catch (error) {
      const failure = [headerOf(FRAME.FAILURE, id), failureBytes(error)] as const;
      if (this.channel.isOpen) await this.channel.send(failure).catch(() => undefined);
    }
  }

  private forget(id: number): void {
    this.requests.delete(id);
    this.tell();
  }

  private readonly tell = (): void => {
    for (const each of this.waiting.splice(0)) each();
  };

  private async until(holds: () => boolean): Promise<void> {
    while (!holds()) await new Promise<void>((resolve) => this.waiting.push(resolve));
  }
}
