/** Two adapters of mock that speak SDP, and streams between them in promises. */
import { type Ia, openIa } from '../../../../../core/index.js';
import { Fabric, type FabricOptions, mock } from '../../../../../providers/mock/index.js';
import {
  sdp,
  type SdpOptions,
  type SdpProtocol,
  type SdpStream,
  type Time,
} from '../../../../../samples/ulp/sdp/index.js';
import type { ByteStreamListener, StreamError } from '../../../../../samples/ulp/socket/index.js';

export const CLIENT = '192.0.2.2';
export const SERVER = '192.0.2.1';
export const PORT = 7000;

/** The fabric's time, in which a minute takes no time. */
export function timeOf(fabric: Fabric): Time {
  return {
    now: () => fabric.clock.now() / 1000,
    after(ms, task) {
      const event = fabric.clock.at(fabric.clock.now() + ms * 1000, task);
      return () => fabric.clock.cancel(event);
    },
  };
}

/** One end, with everything that it is told. */
export class End {
  readonly received: number[] = [];
  readonly urgent: number[] = [];
  hasEnded = false;
  /** Reads what comes; false lets it lie. */
  isReading = true;
  readonly closed: Promise<StreamError | undefined>;
  private readonly endWaits: (() => void)[] = [];
  private readonly byteWaits: { readonly bytes: number; readonly resolve: () => void }[] = [];

  constructor(
    readonly stream: SdpStream,
    isReading = true,
  ) {
    this.isReading = isReading;
    stream.urgent = (byte) => this.urgent.push(byte);
    this.closed = new Promise((resolve) => {
      stream.start({ onReadable: () => this.read(), onClose: resolve });
    });
  }

  write(...chunks: readonly Uint8Array[]): Promise<void> {
    return new Promise((resolve, reject) => {
      this.stream.write(chunks, (error) => (error === undefined ? resolve() : reject(error)));
    });
  }

  shutdown(): Promise<void> {
    return new Promise((resolve, reject) => {
      this.stream.shutdown((error) => (error === undefined ? resolve() : reject(error)));
    });
  }

  read(): void {
    if (!this.isReading) return;
    for (let bytes = this.stream.peek(); bytes !== undefined; bytes = this.stream.peek()) {
      for (const byte of bytes) this.received.push(byte);
      this.stream.consume(bytes.length);
    }
    this.hasEnded ||= this.stream.hasEnded;
    if (this.hasEnded) for (const wait of this.endWaits.splice(0)) wait();
    for (const wait of this.byteWaits) if (this.received.length >= wait.bytes) wait.resolve();
  }

  /** So many bytes have come. */
  got(bytes: number): Promise<void> {
    return new Promise((resolve) => {
      this.byteWaits.push({ bytes, resolve });
      this.read();
    });
  }

  /** The peer sends no more, and all has been read. */
  ended(): Promise<void> {
    return new Promise((resolve) => {
      this.endWaits.push(resolve);
      this.read();
    });
  }
}

export class Scene {
  readonly accepted: End[] = [];
  private readonly acceptWaits: ((end: End) => void)[] = [];
  listener!: ByteStreamListener;

  private constructor(
    readonly fabric: Fabric,
    readonly here: Ia,
    readonly there: Ia,
    readonly client: SdpProtocol,
    readonly server: SdpProtocol,
  ) {}

  static async make(
    options: SdpOptions = {},
    ofServer: SdpOptions = options,
    ofFabric: FabricOptions = {},
  ): Promise<Scene> {
    const fabric = new Fabric({ seed: 1, autoRun: true, ...ofFabric });
    const there = await openIa(mock({ fabric, address: SERVER }));
    const here = await openIa(mock({ fabric, address: CLIENT }));
    const time = timeOf(fabric);
    const [client, server] = [sdp(here, { time, ...options }), sdp(there, { time, ...ofServer })];
    return new Scene(fabric, here, there, client, server);
  }

  async listen(
    more: { backlog?: number; admit?: () => boolean; isReading?: boolean } = {},
  ): Promise<void> {
    const { backlog = 16, admit = () => true, isReading = true } = more;
    this.listener = await this.server.listen({
      ...{ port: PORT, backlog, admit },
      onStream: (stream) => {
        const end = new End(stream, isReading);
        const wait = this.acceptWaits.shift();
        if (wait === undefined) this.accepted.push(end);
        else wait(end);
      },
      onError: () => undefined,
    });
  }

  accept(): Promise<End> {
    const end = this.accepted.shift();
    if (end !== undefined) return Promise.resolve(end);
    return new Promise((resolve) => this.acceptWaits.push(resolve));
  }

  async connect(isReading = true, signal?: AbortSignal): Promise<End> {
    const stream = await this.client.connect({ address: SERVER, port: PORT, signal });
    return new End(stream, isReading);
  }

  /** Both ends of a connection. */
  async pair(isReading = true): Promise<[End, End]> {
    await this.listen({ isReading });
    return Promise.all([this.connect(isReading), this.accept()]);
  }

  /** What the protocol has made and not freed, of both adapters. */
  get left(): string {
    return [this.here, this.there].map(leftOf).join(', ');
  }

  /** Lets virtual time pass, with all that happens in it. */
  pass(ms: number): Promise<void> {
    return new Promise((resolve) => {
      this.fabric.clock.at(this.fabric.clock.now() + ms * 1000, resolve);
    });
  }

  async close(): Promise<void> {
    await Promise.all([this.here.close(), this.there.close()]);
  }
}

function leftOf(ia: Ia): string {
  const { eps, lmrs, pzs, psps } = JSON.parse(JSON.stringify(ia)) as Record<string, number>;
  return `eps ${eps} lmrs ${lmrs} pzs ${pzs} psps ${psps}`;
}

export const NOTHING_LEFT = 'eps 0 lmrs 0 pzs 0 psps 0, eps 0 lmrs 0 pzs 0 psps 0';

/** Bytes of their own memory, that tell a place from others. */
export function pattern(length: number, first = 0): Uint8Array {
  const bytes = new Uint8Array(length);
  for (let i = 0; i < length; i++) bytes[i] = (first + i * 7 + (i >> 8)) & 0xff;
  return bytes;
}
