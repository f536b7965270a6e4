/** A CM module whose peer is the test. */
import {
  type CmAcceptOptions,
  type CmConnection,
  type CmConnectOptions,
  type CmEvent,
  type CmListenOptions,
  type CmModule,
  type CmRejectOptions,
  type CmRequest,
  gidFromIp,
  PortSpace,
  QpState,
  type QueuePair,
  serviceIdOf,
  SpiError,
} from '../../core/spi/index.js';
import type { FakeWorld } from './fake-world.js';

export class FakeCm implements CmModule {
  readonly listeners = new Map<bigint, CmListenOptions>();
  readonly connections: FakeConnection[] = [];
  readonly connects: CmConnectOptions[] = [];
  readonly requests: FakeRequest[] = [];
  closed = 0;
  /** Thrown by the next connect or accept. */
  failNext: SpiError | undefined = undefined;

  constructor(
    readonly world: FakeWorld,
    private readonly ended: string[],
  ) {}

  listen(options: CmListenOptions): { close(): void } {
    if (this.listeners.has(options.serviceId)) {
      throw new SpiError('EADDRINUSE', `service id ${options.serviceId} is taken`);
    }
    this.listeners.set(options.serviceId, options);
    return { close: () => void this.listeners.delete(options.serviceId) };
  }

  connect(options: CmConnectOptions): FakeConnection {
    this.throwIfAsked();
    this.connects.push(options);
    return this.add(options.qp, options.onEvent);
  }

  async close(): Promise<void> {
    this.closed++;
    this.ended.push('cm');
  }

  /** A peer asks for a connection at a port. */
  request(port: number, privateData = new Uint8Array(0)): FakeRequest {
    const serviceId = serviceIdOf(PortSpace.TCP, port);
    const listener = this.listeners.get(serviceId);
    if (listener === undefined) throw new Error(`nobody listens on port ${port}`);
    const request = new FakeRequest(this, serviceId, privateData);
    this.requests.push(request);
    this.world.defer(() => listener.onRequest?.(request));
    return request;
  }

  add(qp: QueuePair, onEvent: (event: CmEvent) => void): FakeConnection {
    const connection = new FakeConnection(this.world, qp, onEvent);
    this.connections.push(connection);
    return connection;
  }

  throwIfAsked(): void {
    const error = this.failNext;
    this.failNext = undefined;
    if (error !== undefined) throw error;
  }

  /** The newest connection. */
  get connection(): FakeConnection {
    const connection = this.connections.at(-1);
    if (connection === undefined) throw new Error('no connection was begun');
    return connection;
  }
}

export class FakeConnection implements CmConnection {
  state = 'fake';
  readonly remoteGid = gidFromIp('192.0.2.2');
  readonly localPort = 40_000;
  disconnects = 0;
  abandons = 0;
  establishedNotices = 0;

  constructor(
    private readonly world: FakeWorld,
    readonly qp: QueuePair,
    private readonly onEvent: (event: CmEvent) => void,
  ) {}

  /** The CM reports; as always, from the pump. */
  emit(event: CmEvent): void {
    if (event.type === 'established') this.qp.modify({ state: QpState.RTS });
    if (event.type === 'disconnected') this.qp.modify({ state: QpState.ERR });
    this.world.defer(() => this.onEvent(event));
  }

  disconnect(): void {
    this.disconnects++;
    if (this.qp.state !== QpState.ERR) this.qp.modify({ state: QpState.ERR });
  }

  notifyEstablished(): void {
    this.establishedNotices++;
    this.emit({ type: 'established', privateData: new Uint8Array(0) });
  }

  abandon(): void {
    this.abandons++;
  }

  flightRecord(): readonly string[] {
    return ['REQ sent'];
  }
}

export class FakeRequest implements CmRequest {
  transport: 'rc' | 'xrc' = 'rc';
  readonly remoteGid = gidFromIp('192.0.2.2');
  readonly localGid = gidFromIp('192.0.2.1');
  readonly remotePort = 4000;
  readonly remoteQpn = 0x77;
  readonly responderResources = 4;
  readonly initiatorDepth = 2;
  readonly retryCount = 7;
  readonly rnrRetryCount = 7;
  readonly pathMtuBytes = 1024;
  accepted: CmAcceptOptions | undefined = undefined;
  rejected: CmRejectOptions | undefined = undefined;

  constructor(
    private readonly cm: FakeCm,
    readonly serviceId: bigint,
    readonly privateData: Uint8Array,
  ) {}

  accept(options: CmAcceptOptions): FakeConnection {
    this.cm.throwIfAsked();
    this.accepted = options;
    options.qp.modify({ state: QpState.RTR });
    return this.cm.add(options.qp, options.onEvent);
  }

  reject(options: CmRejectOptions): void {
    this.cm.throwIfAsked();
    this.rejected = options;
  }
}
