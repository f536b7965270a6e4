/** A forwarder: accepts connections on one endpoint and copies bytes to the other until drained. */
import type { Adapters } from './adapters.js';
import type { Endpoint } from './endpoint.js';
import { type AnySocket, hasEndedByReset, isBroken, reset } from './resets.js';
import { once } from 'node:events';
import { type AddressInfo, connect as netConnect, Server } from 'node:net';
import { rsocket, type RsocketOptions } from 'dapl/ulp/rsocket';
import { createConnection, RdmaServer } from 'dapl/ulp/socket';

/** Units of the byte counters. */
const UNITS = ['B', 'KiB', 'MiB', 'GiB', 'TiB'] as const;

class Counters {
  /** Connections that were accepted. */
  accepted = 0;
  /** Connections whose other endpoint could not be reached. */
  refused = 0;
  /** Connections that were established on both sides and ended with an error. */
  broken = 0;
  private forthBytes = 0;
  private backBytes = 0;

  /** @param open the open connections */
  constructor(private readonly open: ReadonlySet<Forwarding>) {}

  /** Adds the byte counts of a connection that has ended. */
  keep({ forthBytes, backBytes }: Forwarding): void {
    this.forthBytes += forthBytes;
    this.backBytes += backBytes;
  }

  get totalBytes(): { readonly forth: number; readonly back: number } {
    let { forthBytes: forth, backBytes: back } = this;
    for (const forwarding of this.open) {
      forth += forwarding.forthBytes;
      back += forwarding.backBytes;
    }
    return { forth, back };
  }

  get text(): string {
    const { forth, back } = this.totalBytes;
    return [
      `${this.open.size} open of ${this.accepted}`,
      `${this.refused} refused`,
      `${this.broken} broken`,
      `${bytesText(forth)} forth`,
      `${bytesText(back)} back`,
    ].join(', ');
  }
}

/** Formats bytes with three digits, in units of 1024. */
export function bytesText(bytes: number): string {
  let value = bytes;
  let unit = 0;
  while (value >= 1000 && unit < UNITS.length - 1) {
    value /= 1024;
    unit++;
  }
  const digits = unit === 0 || value >= 100 ? 0 : value >= 10 ? 1 : 2;
  return `${value.toFixed(digits)} ${UNITS[unit]!}`;
}

/**
 * Period of the check for resets. TCP sockets and rsockets that nothing reads do not report one.
 */
const LOOK_EVERY_MS = 500;

export interface ForwarderOptions {
  readonly listen: Endpoint;
  readonly to: Endpoint;
  readonly adapters: Adapters;
  /** Registered memory of each rsocket, for either direction: an even number from 2048 to 2^30. */
  readonly bufferBytes: number;
  /** A connection ended with an error. @param peer of the accepted side */
  readonly onTrouble: (peer: string, error: Error) => void;
  /** The listener failed. */
  readonly onError: (error: Error) => void;
}

export class Forwarder {
  readonly counters: Counters;
  private readonly open = new Set<Forwarding>();
  private readonly listening: Promise<Listening>;
  private onDrained: () => void = () => undefined;
  private looking: NodeJS.Timeout | undefined = undefined;

  private constructor(
    private readonly options: ForwarderOptions,
    private readonly dial: Dial,
  ) {
    this.counters = new Counters(this.open);
    const onSocket = (socket: AnySocket): void => this.forward(socket);
    const { listen, adapters, bufferBytes, onError } = options;
    this.listening = listenOn(listen, adapters, bufferBytes, onSocket, onError);
  }

  /**
   * Listens.
   * @throws errors of opening an adapter, and of `listen`
   */
  static async start(options: ForwarderOptions): Promise<Forwarder> {
    const { to, adapters, bufferBytes } = options;
    const forwarder = new Forwarder(options, await diallerOf(to, adapters, bufferBytes));
    await forwarder.listening;
    return forwarder;
  }

  /** The endpoint that it listens on, with the port that was chosen. */
  async endpoint(): Promise<Endpoint> {
    return (await this.listening).endpoint;
  }

  /** Accepts no more connections. */
  async unlisten(): Promise<void> {
    (await this.listening).close();
  }

  /**
   * Waits for the open connections to end.
   * @param signal resets the remaining connections when it fires
   * @returns the number of connections that were reset
   */
  async drain(signal: AbortSignal): Promise<number> {
    let cutOff = 0;
    const cut = (): void => {
      cutOff = this.open.size;
      for (const forwarding of this.open) forwarding.reset();
    };
    if (this.open.size > 0) {
      const drained = new Promise<void>((resolve) => (this.onDrained = resolve));
      if (signal.aborted) cut();
      else signal.addEventListener('abort', cut, { once: true });
      await drained;
    }
    return cutOff;
  }

  private forward(accepted: AnySocket): void {
    const peer = peerText(accepted);
    this.counters.accepted++;
    let isJoined = false;
    const forwarding: Forwarding = new Forwarding(accepted, this.dial(), {
      onJoined: () => (isJoined = true),
      onEnd: (error) => {
        this.open.delete(forwarding);
        this.counters.keep(forwarding);
        if (error !== undefined) {
          if (isJoined) this.counters.broken++;
          else this.counters.refused++;
          this.options.onTrouble(peer, error);
        }
        if (this.open.size > 0) return;
        clearInterval(this.looking);
        this.looking = undefined;
        this.onDrained();
      },
    });
    this.open.add(forwarding);
    this.looking ??= setInterval(() => {
      for (const each of this.open) each.endIfBroken();
    }, LOOK_EVERY_MS);
  }
}

function peerText({ remoteAddress, remotePort }: AnySocket): string {
  if (remoteAddress === undefined) return 'a local peer';
  return `${remoteAddress.includes(':') ? `[${remoteAddress}]` : remoteAddress}:${remotePort}`;
}

export interface ForwardingEvents {
  /** The other endpoint is connected. */
  onJoined(): void;
  /** Both sockets are closed; with an error if not all bytes were forwarded. */
  onEnd(error: Error | undefined): void;
}

/**
 * Joins an accepted socket to one that is being connected. The end of one direction is forwarded as
 * an end. An error on one socket resets the other, so that no peer mistakes a part for the whole.
 */
export class Forwarding {
  private open = 2;
  private error: Error | undefined = undefined;

  constructor(
    private readonly accepted: AnySocket,
    private readonly dialled: AnySocket,
    private readonly events: ForwardingEvents,
  ) {
    dialled.once('connect', () => events.onJoined());
    this.watch(accepted, dialled);
    this.watch(dialled, accepted);
  }

  /** Bytes from the accepted socket. */
  get forthBytes(): number {
    return this.accepted.bytesRead;
  }

  /** Bytes to the accepted socket. */
  get backBytes(): number {
    return this.dialled.bytesRead;
  }

  /** Resets both sockets. */
  reset(error = new Error('it was cut off')): void {
    this.error ??= error;
    reset(this.accepted);
    reset(this.dialled);
  }

  /** Resets both sockets if one was reset while the other held it back. */
  endIfBroken(): void {
    if (isBroken(this.accepted) || isBroken(this.dialled)) this.reset(wasReset());
  }

  private watch(socket: AnySocket, other: AnySocket): void {
    socket.pipe(other, { end: false });
    socket.once('end', () => {
      if (hasEndedByReset(socket)) this.reset(wasReset());
      else other.end();
    });
    socket.on('error', (error) => (this.error ??= error));
    socket.once('close', () => {
      const isWhole = socket.readableEnded && socket.writableFinished;
      if (!isWhole) {
        this.error ??= new Error('the peer closed before it got all bytes');
        reset(other);
      }
      this.open--;
      if (this.open === 0) this.events.onEnd(this.error);
    });
  }
}

function wasReset(): Error {
  return Object.assign(new Error('read ECONNRESET'), { code: 'ECONNRESET' });
}

/** Opens a new connection to an endpoint on each call. */
export type Dial = () => AnySocket;

/** The directions end independently of each other. */
const HALF_OPEN = { allowHalfOpen: true } as const;

/**
 * @param bufferBytes of each rsocket, for either direction
 * @throws errors of opening the adapter
 */
export async function diallerOf(
  endpoint: Endpoint,
  adapters: Adapters,
  bufferBytes: number,
): Promise<Dial> {
  if (endpoint.kind === 'unix') {
    return () => netConnect({ ...HALF_OPEN, path: endpoint.path });
  }
  const { kind, host, port } = endpoint;
  if (kind === 'tcp') return () => netConnect({ ...HALF_OPEN, host, port, noDelay: true });
  const protocol = rsocket(await adapters.toward(host), buffers(bufferBytes));
  return () => createConnection({ ...HALF_OPEN, protocol, host, port });
}

export interface Listening {
  /** The endpoint, with the port that was chosen. */
  readonly endpoint: Endpoint;
  /** Accepts no more connections; open ones continue. */
  close(): void;
}

/**
 * @param bufferBytes of each rsocket, for either direction
 * @param onSocket receives each accepted connection, paused
 * @param onError is called when the listener fails
 * @throws errors of opening the adapter, and of `listen`
 */
export async function listenOn(
  endpoint: Endpoint,
  adapters: Adapters,
  bufferBytes: number,
  onSocket: (socket: AnySocket) => void,
  onError: (error: Error) => void,
): Promise<Listening> {
  const options = { ...HALF_OPEN, pauseOnConnect: true, noDelay: true };
  if (endpoint.kind === 'rsocket') {
    const protocol = rsocket(await adapters.on(endpoint.host), buffers(bufferBytes));
    const server = new RdmaServer({ ...options, protocol }, onSocket);
    server.listen(endpoint.port, endpoint.host);
    await once(server, 'listening');
    server.on('error', onError);
    const { port } = server.address()!;
    return { endpoint: { ...endpoint, port }, close: () => void server.close() };
  }
  const server = new Server(options, onSocket);
  server.listen(endpoint.kind === 'unix' ? { path: endpoint.path } : { ...endpoint });
  await once(server, 'listening');
  server.on('error', onError);
  const close = (): void => void server.close();
  if (endpoint.kind === 'unix') return { endpoint, close };
  const { port } = server.address() as AddressInfo;
  return { endpoint: { ...endpoint, port }, close };
}

/** Messages in flight each way. More of them than fit into the buffers only cost memory. */
const MESSAGES = 64;

function buffers(bytes: number): RsocketOptions {
  return { receiveBytes: bytes, sendBytes: bytes, credits: MESSAGES, sends: MESSAGES };
}
