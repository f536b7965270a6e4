/** MAD and CM modules on two software HCAs. */
import assert from 'node:assert/strict';
import {
  type CmConnection,
  type CmConnectOptions,
  type CmEvent,
  type CmRequest,
  PortSpace,
  QpState,
  type QueuePair,
  serviceIdOf,
  silentLogger,
} from '../../core/spi/index.js';
import { Cm } from '../../plugins/cm/index.js';
import { parseCmMad } from '../../plugins/cm/wire/message.js';
import { Mad } from '../../plugins/mad/index.js';
import { SeededRandom } from '../../providers/mock/index.js';
import { HcaPair, postReceive, type Side, type SideOptions } from './hca-pair.js';

export const SERVICE = serviceIdOf(PortSpace.TCP, 20_049);
const PARAMETERS = {
  responderResources: 4,
  initiatorDepth: 4,
  retryCount: 7,
  rnrRetryCount: 7,
  minRnrTimer: 12,
  accessFlags: 7,
};
const NONE = new Uint8Array(0);
/** UD SEND Only: BTH and DETH. */
const HEADERS = 20;

/** A device, its modules, and one connection. */
class Node {
  readonly mad: Mad;
  readonly cm: Cm;
  readonly events: CmEvent[] = [];
  qp: QueuePair | undefined;
  connection: CmConnection | undefined;

  constructor(
    private readonly pair: CmHcaPair,
    readonly side: Side,
    seed: number,
  ) {
    const { driver } = side;
    const services = {
      device: driver.device,
      timers: driver.timers,
      clock: pair.clock,
      scheduler: driver,
      random: new SeededRandom(seed),
      logger: silentLogger,
    };
    this.mad = new Mad(services);
    this.cm = new Cm({ ...services, mad: this.mad });
  }

  newQp(): QueuePair {
    const qp = this.side.createQp();
    qp.modify({ state: QpState.INIT, pkeyIndex: 0, portNumber: 1, accessFlags: 0 });
    this.qp = qp;
    return qp;
  }

  connect(to: Node, overrides: Partial<CmConnectOptions> = {}): CmConnection {
    this.connection = this.cm.connect({
      ...PARAMETERS,
      qp: this.newQp(),
      remoteGid: to.side.port.gids[0] ?? NONE,
      serviceId: SERVICE,
      privateData: NONE,
      timeoutUs: Infinity,
      onEvent: (event) => this.events.push(event),
      ...overrides,
    });
    return this.connection;
  }

  accept(request: CmRequest): CmConnection {
    const onEvent = (event: CmEvent): void => void this.events.push(event);
    const qp = this.newQp();
    postReceive(this.side, qp, [{ offset: 0, length: 64 }], 1);
    this.connection = request.accept({ ...PARAMETERS, qp, privateData: NONE, onEvent });
    return this.connection;
  }

  get types(): string[] {
    return this.events.map(({ type }) => type);
  }

  async close(): Promise<void> {
    const closed = this.cm.close().then(() => this.mad.close());
    await this.pair.runAsync(closed);
  }
}

/** Two nodes with MAD and CM modules of their own. */
export class CmHcaPair extends HcaPair {
  readonly client: Node;
  readonly server: Node;

  constructor(seed = 1, options: SideOptions = {}, ofB: SideOptions = {}) {
    super(seed, options, ofB);
    this.client = new Node(this, this.a, seed + 10);
    this.server = new Node(this, this.b, seed + 20);
  }

  /** Runs until a promise has settled. */
  async runAsync(promise: Promise<void>): Promise<void> {
    let settled = false;
    void promise.then(() => (settled = true));
    for (let i = 0; i < 100 && !settled; i++) {
      this.run(100_000);
      await new Promise((resolve) => setImmediate(resolve));
    }
    assert.ok(settled, 'the promise does not settle');
  }

  listen(onRequest = (request: CmRequest): void => void this.server.accept(request)): void {
    this.server.cm.listen({ serviceId: SERVICE, backlog: 8, onRequest });
  }

  /** How often the n-th MAD (from 1) with a name arrives. */
  tamper(name: string, nth: number, copies: number): void {
    let seen = 0;
    this.filterMads((message) => (message === name && ++seen === nth ? copies : 1));
  }

  filterMads(copiesOf: (name: string) => number): void {
    for (const { port } of [this.a, this.b]) {
      port.filter = (packet) => {
        const mad = packet.length === HEADERS + 256 ? parseCmMad(packet.slice(HEADERS)) : undefined;
        return new Array<Uint8Array>(mad ? copiesOf(mad.message.name) : 1).fill(packet);
      };
    }
  }
}

/** Connects, and ends, while MADs are lost and repeated: nothing is left, and one end is told. */
export async function endUnderFaults(seed: number): Promise<void> {
  const pair = new CmHcaPair(seed);
  const { client, server } = pair;
  const random = new SeededRandom(seed);
  pair.filterMads(() => [0, 0, 1, 1, 1, 1, 1, 1, 2, 3][random.below(10)] ?? 1);
  pair.listen();
  const connection = client.connect(server);
  pair.run(random.below(20_000_000));
  connection.disconnect();
  pair.run(120_000_000);
  server.connection?.disconnect();
  pair.run(120_000_000);
  const where = `seed ${seed}: ${client.types.join()} / ${server.types.join()}`;
  assert.ok(client.cm.isIdle && server.cm.isIdle, where);
  assert.equal(client.types.filter((type) => type === 'disconnected').length, 1, where);
  assert.equal(pair.a.driver.nextDeadlineUs(), Infinity, where);
  assert.equal(pair.b.driver.nextDeadlineUs(), Infinity, where);
  if (seed % 10 === 0) await client.close();
}
