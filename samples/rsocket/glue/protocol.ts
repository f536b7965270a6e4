/** rsockets as a byte-stream protocol: connect and listen over adapters. */
import type { Ia } from 'dapl';
import {
  type ByteStreamListener,
  type ByteStreamProtocol,
  type StreamConnectOptions,
  StreamError,
} from '../../socket/index.js';
import { Adapter } from './adapter.js';
import { errorOf } from './errors.js';
import { RsocketListener, type RsocketListenOptions } from './listener.js';
import { planOf, type RsocketOptions, type RsocketPlan } from './options.js';
import { RsocketStream } from './stream.js';

/** Where adapters come from, where it is not one that is given. They stay open meanwhile. */
export interface AdapterSource {
  /** One that leads to a peer; `own` is the own address, where that is asked for. */
  toward(peer: string, own: string | undefined): Promise<Ia>;
  /** One to listen on; without an address, that of the source's choice. */
  on(own: string | undefined): Promise<Ia>;
}

/** Local ports of connections that are made here: the CM keeps its own to itself. */
const UNKNOWN_PORT = 0;

export class RsocketProtocol implements ByteStreamProtocol {
  readonly name = 'rsocket';
  private readonly plan: RsocketPlan;

  constructor(
    private readonly source: AdapterSource,
    options: RsocketOptions,
  ) {
    this.plan = planOf(options);
  }

  async connect(options: StreamConnectOptions): Promise<RsocketStream> {
    const { address, port, localAddress, signal } = options;
    const where = { syscall: 'connect', address, port };
    signal?.throwIfAborted();
    let adapter: Adapter | undefined;
    try {
      adapter = Adapter.join(await this.source.toward(address, localAddress));
      signal?.throwIfAborted();
      return await this.dial(adapter, { address, port }, signal);
    } catch (error) {
      if (signal?.aborted === true) throw error;
      throw errorOf(error, where);
    }
  }

  async listen(options: RsocketListenOptions): Promise<ByteStreamListener> {
    const { address, port } = options;
    try {
      const ia = await this.source.on(address);
      return new RsocketListener(Adapter.join(ia), this.plan, options);
    } catch (error) {
      throw errorOf(error, { syscall: 'listen', address, port });
    }
  }

  private dial(
    adapter: Adapter,
    remote: { readonly address: string; readonly port: number },
    signal: AbortSignal | undefined,
  ): Promise<RsocketStream> {
    return new Promise((resolve, reject) => {
      const onAbort = (): void => {
        stream.giveUp();
        reject(signal?.reason as Error);
      };
      const settle = (): void => signal?.removeEventListener('abort', onAbort);
      let stream: RsocketStream;
      const opening = {
        onOpen: (): void => {
          settle();
          resolve(stream);
        },
        onFailure: (error: StreamError): void => {
          settle();
          reject(error);
        },
      };
      try {
        stream = new RsocketStream(adapter, this.plan, remote, UNKNOWN_PORT, opening);
      } catch (error) {
        adapter.leave();
        throw error;
      }
      signal?.addEventListener('abort', onAbort, { once: true });
      stream.dial();
    });
  }
}

/**
 * rsockets over an adapter, or over those of a source.
 * @throws RangeError naming option, value and limits
 */
export function rsocket(over: Ia | AdapterSource, options: RsocketOptions = {}): RsocketProtocol {
  const source = 'toward' in over ? over : sourceOf(over);
  return new RsocketProtocol(source, options);
}

function sourceOf(ia: Ia): AdapterSource {
  const given = (own: string | undefined): Promise<Ia> => {
    if (own === undefined || own === ia.query().ia.iaAddress) return Promise.resolve(ia);
    const detail = `the adapter is on ${ia.query().ia.iaAddress}`;
    return Promise.reject(
      new StreamError('EADDRNOTAVAIL', { syscall: 'bind', address: own, detail }),
    );
  };
  return { toward: (_, own) => given(own), on: given };
}
