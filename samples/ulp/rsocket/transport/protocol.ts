/** rsockets as a byte-stream protocol: connect and listen over adapters. */
import type { Ia } from 'dapl';
import type {
  ByteStreamListener,
  ByteStreamProtocol,
  StreamConnectOptions,
} from '../../socket/index.js';
import { type AdapterSource, opened, sourceOf } from '../../socket/over-dat/index.js';
import { errorOf } from './link.js';
import { listenAt, type RsocketListenOptions } from './listener.js';
import { planOf, type RsocketOptions, type RsocketPlan } from './options.js';
import { RsocketStream } from './stream.js';

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
    signal?.throwIfAborted();
    try {
      const ia = await this.source.toward(address, localAddress);
      signal?.throwIfAborted();
      return await opened(signal, (opening) => {
        const stream = RsocketStream.on(ia, this.plan, { address, port }, opening);
        stream.dial();
        return stream;
      });
    } catch (error) {
      if (signal?.aborted === true) throw error;
      throw errorOf(error, { syscall: 'connect', address, port });
    }
  }

  async listen(options: RsocketListenOptions): Promise<ByteStreamListener> {
    const { address, port } = options;
    try {
      return listenAt(await this.source.on(address), this.plan, options);
    } catch (error) {
      throw errorOf(error, { syscall: 'listen', address, port });
    }
  }
}

/**
 * rsockets over one adapter, or over those of a source. @throws RangeError naming option, value and
 * limits
 */
export function rsocket(over: Ia | AdapterSource, options: RsocketOptions = {}): RsocketProtocol {
  return new RsocketProtocol(sourceOf(over), options);
}
