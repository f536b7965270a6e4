/** SDP as a byte-stream protocol: connect and listen over adapters. */
import type { Ia } from 'dapl';
import {
  type ByteStreamListener,
  type ByteStreamProtocol,
  type StreamAddress,
  type StreamConnectOptions,
  StreamError,
} from '../../socket/index.js';
import { Adapter } from './adapter.js';
import { errorOf } from './errors.js';
import { helloOf } from './hellos.js';
import { SdpListener, type SdpListenOptions } from './listener.js';
import { planOf, type SdpOptions, type SdpPlan } from './options.js';
import { LocalPorts, serviceIdOf } from './ports.js';
import { SdpStream } from './stream.js';

/** Where adapters come from, where it is not one that is given. They stay open meanwhile. */
export interface AdapterSource {
  /** One that leads to a peer; `own` is the own address, where that is asked for. */
  toward(peer: string, own: string | undefined): Promise<Ia>;
  /** One to listen on; without an address, that of the source's choice. */
  on(own: string | undefined): Promise<Ia>;
}

export class SdpProtocol implements ByteStreamProtocol {
  readonly name = 'sdp';
  private readonly plan: SdpPlan;
  private readonly ports = new LocalPorts();

  constructor(
    private readonly source: AdapterSource,
    options: SdpOptions,
  ) {
    this.plan = planOf(options);
  }

  async connect(options: StreamConnectOptions): Promise<SdpStream> {
    const { address, port, localAddress, signal } = options;
    signal?.throwIfAborted();
    try {
      const ia = await this.source.toward(address, localAddress);
      signal?.throwIfAborted();
      return await this.dial(ia, options);
    } catch (error) {
      if (signal?.aborted === true) throw error;
      throw errorOf(error, { syscall: 'connect', address, port });
    }
  }

  async listen(options: SdpListenOptions): Promise<ByteStreamListener> {
    const { address, port } = options;
    try {
      const ia = await this.source.on(address);
      return new SdpListener(Adapter.join(ia), this.plan, options);
    } catch (error) {
      throw errorOf(error, { syscall: 'listen', address, port });
    }
  }

  private dial(ia: Ia, options: StreamConnectOptions): Promise<SdpStream> {
    const { signal, localPort, address, port } = options;
    const own = ia.query().ia.iaAddress;
    const local: StreamAddress = { address: own, port: this.ports.take(own, localPort) };
    const remote: StreamAddress = { address, port };
    return new Promise((resolve, reject) => {
      const onAbort = (): void => {
        stream.giveUp();
        reject(signal?.reason as Error);
      };
      const settle = (): void => signal?.removeEventListener('abort', onAbort);
      let stream: SdpStream;
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
      const adapter = Adapter.join(ia);
      try {
        const { receiveBytes } = this.plan;
        stream = new SdpStream(adapter, this.plan, local, remote, receiveBytes, opening);
      } catch (error) {
        adapter.leave();
        this.ports.give(own, local.port);
        throw error;
      }
      stream.onEnded = () => this.ports.give(own, local.port);
      signal?.addEventListener('abort', onAbort, { once: true });
      stream.dial(serviceIdOf(port), helloOf(this.plan, local, remote));
    });
  }
}

/**
 * SDP over an adapter, or over those of a source. Not over verbs: librdmacm has no service ids of
 * SDP, and `connect` and `listen` are EIO there.
 * @throws RangeError naming option, value and limits
 */
export function sdp(over: Ia | AdapterSource, options: SdpOptions = {}): SdpProtocol {
  const source = 'toward' in over ? over : sourceOf(over);
  return new SdpProtocol(source, options);
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
