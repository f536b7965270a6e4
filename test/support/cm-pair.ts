/** Two nodes and what their consumers see: the setting of most CM tests. */
import {
  type CmAcceptOptions,
  type CmConnection,
  type CmConnectOptions,
  type CmEvent,
  type CmListener,
  type CmRequest,
  type Gid,
  PortSpace,
  serviceIdOf,
} from '../../core/spi/index.js';
import { type CmMessage, emitCmMad, parseCmMad } from '../../plugins/cm/wire/message.js';
import { FakeNetwork, type Parcel } from './fake-network.js';
import type { FakeQueuePair } from './fake-queue-pair.js';
import { FakeNode, type FakeNodeOptions } from './fake-node.js';
import { VirtualWorld } from './virtual-world.js';

export const SERVICE = serviceIdOf(PortSpace.TCP, 7471);

export const PARAMETERS = {
  responderResources: 4,
  initiatorDepth: 3,
  retryCount: 6,
  rnrRetryCount: 5,
  minRnrTimer: 12,
  accessFlags: 7,
} as const;

export const text = (string: string): Uint8Array => new TextEncoder().encode(string);
export const textOf = (data: Uint8Array): string =>
  new TextDecoder().decode(data).replace(/\0+$/, '');

export interface Side {
  qp: FakeQueuePair;
  connection: CmConnection;
  events: CmEvent[];
}

export const typesOf = (events: readonly CmEvent[]): string[] => events.map(({ type }) => type);

export interface CmPairOptions {
  readonly a?: FakeNodeOptions;
  readonly b?: FakeNodeOptions;
  readonly ips?: readonly [string, string];
}

type BodyOf<N extends CmMessage['name']> = Extract<CmMessage, { readonly name: N }>['body'];

export class CmPair {
  readonly world = new VirtualWorld();
  readonly network = new FakeNetwork(this.world);
  readonly a: FakeNode;
  readonly b: FakeNode;
  readonly requests: CmRequest[] = [];

  constructor(options: CmPairOptions = {}) {
    const [ipA, ipB] = options.ips ?? ['10.0.0.1', '10.0.0.2'];
    this.a = new FakeNode(this.network, ipA, { seed: 11, ...options.a });
    this.b = new FakeNode(this.network, ipB, { seed: 22, ...options.b });
  }

  /** Names of the messages carried so far. */
  get messages(): string[] {
    return this.network.carried.map(messageName);
  }

  /** Takes the requests of XRC initiators. */
  listenXrc(onRequest: (request: CmRequest) => void): CmListener {
    return this.listen(onRequest, 16, 'xrc');
  }

  listen(
    onRequest: (request: CmRequest) => void,
    backlog = 16,
    transport: CmRequest['transport'] = 'rc',
  ): CmListener {
    return this.b.cm.listen({
      serviceId: SERVICE,
      backlog,
      transport,
      onRequest: (request) => {
        this.requests.push(request);
        onRequest(request);
      },
    });
  }

  connect(overrides: Partial<CmConnectOptions> = {}): Side {
    const qp = this.a.device.connectableQp();
    const events: CmEvent[] = [];
    const connection = this.a.cm.connect({
      ...PARAMETERS,
      qp,
      remoteGid: this.b.device.gids[0] ?? new Uint8Array(16),
      serviceId: SERVICE,
      privateData: text('hello'),
      timeoutUs: Infinity,
      onEvent: (event) => events.push(event),
      ...overrides,
    });
    return { qp, connection, events };
  }

  accept(request: CmRequest, overrides: Partial<CmAcceptOptions> = {}): Side {
    const qp = this.b.device.connectableQp();
    const events: CmEvent[] = [];
    const connection = request.accept({
      ...PARAMETERS,
      qp,
      privateData: text('welcome'),
      onEvent: (event) => events.push(event),
      ...overrides,
    });
    return { qp, connection, events };
  }

  /** Listens, connects, accepts, and lets it happen; timewait is not waited for. */
  async established(): Promise<{ active: Side; passive: Side }> {
    let passive: Side | undefined;
    const listener = this.listen((request) => (passive = this.accept(request)));
    const active = this.connect();
    await this.world.runFor(100_000);
    listener.close();
    if (!passive) throw new Error('no request has come');
    return { active, passive };
  }

  /** A message made by the test arrives at a node. */
  inject(to: FakeNode, message: CmMessage, from: Gid = this.peerOf(to)): void {
    const ids = { transactionIdHi: 7, transactionIdLo: 7, attributeModifier: 0 };
    const [destination] = to.device.gids;
    if (destination) to.device.receive(emitCmMad({ ...ids, message }), from, destination);
  }

  /** Bodies of the messages of a name carried so far. */
  bodies<N extends CmMessage['name']>(name: N): BodyOf<N>[] {
    const messages = this.network.carried.map(messageOf).filter((m) => m.name === name);
    return messages.map(({ body }) => body as BodyOf<N>);
  }

  private peerOf(node: FakeNode): Gid {
    return (node === this.a ? this.b : this.a).device.gids[0] ?? new Uint8Array(16);
  }

  /** Loses, duplicates or delays the n-th message (from 1) of a name; the rest is as it was. */
  tamper(name: string, nth: number, delaysUs: readonly number[]): void {
    let seen = 0;
    const usual = this.network.fate;
    this.network.fate = (parcel) =>
      messageName(parcel) === name && ++seen === nth ? delaysUs : usual(parcel);
  }
}

export function messageName(parcel: Parcel): string {
  return messageOf(parcel).name;
}

export function messageOf(parcel: Parcel): CmMessage {
  const mad = parseCmMad(parcel.data);
  if (!mad) throw new Error('not a CM message');
  return mad.message;
}
