/** Datagram endpoints by host name: those of `dapl/flow`, with the adapter opened and closed. */
import type { Ia, UdAddress, UdAddressHandle, UdEp, UdService } from 'dapl';
import type {
  Data,
  Datagram,
  Datagrams as FlowDatagrams,
  SendOptions,
  ServeDatagramOptions,
  WaitOptions,
} from 'dapl/flow';
import { Deadline } from './deadline.js';
import { addressOf } from './names.js';
import { checkResolve, type ResolveOptions } from './options.js';

/** Made by `datagrams`. It keeps the process alive until it is closed, unless `unref()`. */
export class Datagrams implements AsyncIterable<Datagram> {
  /** @internal */
  constructor(private readonly inner: FlowDatagrams) {}

  /** The adapter (DAT object). */
  get ia(): Ia {
    return this.inner.ia;
  }

  /** The endpoint (DAT object). Post nothing on it. */
  get ep(): UdEp {
    return this.inner.ep;
  }

  /** IP address of this side: the adapter's first. */
  get address(): string {
    return this.inner.ia.address;
  }

  /** Queue pair number; peers send to it at this side's address. */
  get qpn(): number {
    return this.inner.qpn;
  }

  /** Bytes of the longest datagram that can be sent: the MTU of the device. */
  get maxDatagramBytes(): number {
    return this.inner.maxDatagramBytes;
  }

  /**
   * See `dapl/flow`: resolves when this side has closed the endpoint, rejects when it has failed.
   */
  get closed(): Promise<void> {
    return this.inner.closed;
  }

  /** See `dapl/flow`: resolves when the datagram has left. */
  send(data: Data, to: UdAddressHandle | UdAddress, options?: SendOptions): Promise<void> {
    return this.inner.send(data, to, options);
  }

  /** See `dapl/flow`: the oldest datagram that was not received yet, or the next one. */
  receive(options?: WaitOptions): Promise<Datagram> {
    return this.inner.receive(options);
  }

  /** Iterates over datagrams, until this side closes. */
  [Symbol.asyncIterator](): AsyncIterableIterator<Datagram> {
    return this.inner[Symbol.asyncIterator]();
  }

  /**
   * Asks a host where the service on a port is.
   * @throws FlowError, as a rejection: DAT_INVALID_ADDRESS for a host that has no address, or does
   * not answer; DAT_CONN_QUAL_UNAVAILABLE when it refuses; as `datagrams.resolve` of `dapl/flow`
   */
  async resolve(options: ResolveOptions): Promise<UdAddressHandle> {
    const operation = 'datagrams.resolve';
    checkResolve(operation, options);
    const { address, family, timeoutMs, signal, ...rest } = options;
    const deadline = new Deadline(operation, { timeoutMs, signal }, 'its name has no address yet');
    const peer = await deadline.during(addressOf(operation, address, family), () => undefined);
    try {
      return await this.inner.resolve({ ...rest, address: peer, ...deadline.left });
    } catch (error) {
      throw deadline.restated(error);
    }
  }

  /** See `dapl/flow`: announces this endpoint to peers that resolve the port. */
  serve(options: ServeDatagramOptions): UdService {
    return this.inner.serve(options);
  }

  /**
   * Closes the endpoint immediately: pending calls reject with DAT_CONN_CLOSED. A second call is a
   * no-op.
   */
  close(): Promise<void> {
    return this.inner.close();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  /** Keeps the process alive until the endpoint is closed: the default. */
  ref(): this {
    this.inner.ref();
    return this;
  }

  /** Lets the process exit while the endpoint is open, as `unref` of node:net. */
  unref(): this {
    this.inner.unref();
    return this;
  }
}
