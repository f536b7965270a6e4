/** A forwarder: accepts connections on one endpoint and copies bytes to the other until drained. */
import type { Adapters } from './adapters.js';
import type { Endpoint } from './endpoint.js';
import { Forwarding } from './forwarding.js';
import type { AnySocket } from './resets.js';
import { type Dial, diallerOf, type Listening, listenOn } from './sockets.js';

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
