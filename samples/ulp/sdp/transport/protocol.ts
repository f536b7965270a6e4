/** SDP as a byte-stream protocol: connect and listen over adapters. */
import type { Ia } from 'dapl';
import type {
  ByteStreamListener,
  ByteStreamProtocol,
  StreamConnectOptions,
} from '../../socket/index.js';
import { type AdapterSource, opened, sourceOf } from '../../socket/over-dat/index.js';
import { errorOf } from './link.js';
import { helloOf } from './hellos.js';
import { listenAt, type SdpListenOptions } from './listener.js';
import { planOf, type SdpOptions, type SdpPlan } from './options.js';
import { LocalPorts, serviceIdOf } from './ports.js';
import { SdpStream } from './stream.js';

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
      return listenAt(await this.source.on(address), this.plan, options);
    } catch (error) {
      throw errorOf(error, { syscall: 'listen', address, port });
    }
  }

  private dial(ia: Ia, options: StreamConnectOptions): Promise<SdpStream> {
    const { plan, ports } = this;
    const { signal, localPort, address, port } = options;
    const own = ia.query().ia.iaAddress;
    const local = { address: own, port: ports.take(own, localPort) };
    const remote = { address, port };
    const givePort = (): void => ports.give(own, local.port);
    return opened(signal, (opening) => {
      let stream: SdpStream;
      try {
        stream = SdpStream.on(ia, plan, local, remote, plan.receiveBytes, opening);
      } catch (error) {
        givePort();
        throw error;
      }
      stream.onEnded = givePort;
      stream.dial(serviceIdOf(port), helloOf(plan, local, remote));
      return stream;
    });
  }
}

/**
 * SDP over one adapter, or over those of a source. It does not work over verbs: librdmacm has no
 * service ids of SDP, and `connect` and `listen` fail with EIO there.
 * @throws RangeError naming option, value and limits
 */
export function sdp(over: Ia | AdapterSource, options: SdpOptions = {}): SdpProtocol {
  return new SdpProtocol(sourceOf(over), options);
}
