/** The MAD and CM modules on the software HCA: QP1, COMM_EST and queue pairs are real here. */
import assert from 'node:assert/strict';
import {
  PortSpace,
  QpState,
  WcStatus,
  WrOpcode,
  serviceIdOf,
  silentLogger,
} from '../../../core/spi/index.js';
import type {
  CmConnectOptions,
  CmConnection,
  CmEvent,
  CmRequest,
  QueuePair,
} from '../../../core/spi/index.js';
import { Cm } from '../../../plugins/cm/index.js';
import { parseCmMad } from '../../../plugins/cm/wire/message.js';
import { Mad } from '../../../plugins/mad/index.js';
import { SeededRandom } from '../../../providers/mock/index.js';
import { HcaPair, drain, postReceive, postSend } from '../../support/hca-pair.js';
import type { Side } from '../../support/hca-pair.js';

const SERVICE = serviceIdOf(PortSpace.TCP, 20_049);
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

class CmHcaPair extends HcaPair {
  readonly client: Node;
  readonly server: Node;

  constructor(seed = 1) {
    super(seed);
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

describe('CM over the software HCA', () => {
  it('connects two queue pairs that then carry data, and disconnects them', async () => {
    const pair = new CmHcaPair();
    const { client, server } = pair;
    pair.listen();
    client.connect(server);
    pair.run(10_000);
    assert.deepEqual([client.types, server.types], [['established'], ['established']]);
    assert.ok(client.qp && server.qp);
    assert.deepEqual([client.qp.state, server.qp.state], [QpState.RTS, QpState.RTS]);

    pair.a.bytes.fill(42, 0, 64);
    postSend(pair.a, client.qp, {
      opcode: WrOpcode.SEND,
      cookie: 5,
      segments: [{ offset: 0, length: 64 }],
    });
    pair.run(10_000);
    assert.deepEqual(
      drain(pair.b.receiveCq).map(({ status, cookie, byteLength }) => [status, cookie, byteLength]),
      [[WcStatus.SUCCESS, 1, 64]],
    );
    assert.deepEqual(pair.b.bytes.subarray(0, 64), pair.a.bytes.subarray(0, 64));

    client.connection?.disconnect();
    pair.run(5_000_000);
    const whole = ['established', 'disconnected', 'timewait-exit'];
    assert.deepEqual([client.types, server.types], [whole, whole]);
    assert.deepEqual([client.qp.state, server.qp.state], [QpState.ERR, QpState.ERR]);
    for (const node of [client, server]) {
      assert.ok(node.cm.isIdle);
      assert.equal(node.cm.counters.unexpected, 0);
      await node.close();
      assert.equal(node.side.driver.nextDeadlineUs(), Infinity);
    }
  });

  it('is established by the first data when RTU is lost (COMM_EST), once', () => {
    const pair = new CmHcaPair();
    const { client, server } = pair;
    pair.tamper('RTU', 1, 0);
    pair.listen();
    client.connect(server);
    pair.run(1_000);
    assert.deepEqual([client.types, server.types], [['established'], []]);
    assert.ok(client.qp && server.qp);
    assert.equal(server.qp.state, QpState.RTR);
    const segments = [{ offset: 0, length: 8 }];
    postSend(pair.a, client.qp, { opcode: WrOpcode.SEND, segments });
    pair.run(1_000);
    assert.deepEqual(server.types, ['established']);
    assert.equal(server.qp.state, QpState.RTS);
    assert.equal(drain(pair.b.receiveCq).length, 1);
    pair.run(10_000_000);
    assert.deepEqual(server.types, ['established']);
  });

  it('rejects what nobody listens for, and what the consumer refuses', () => {
    const pair = new CmHcaPair();
    const { client, server } = pair;
    client.connect(server);
    pair.run(10_000);
    pair.listen((request) => request.reject({ reason: 28, privateData: Uint8Array.of(1, 2, 3) }));
    client.connect(server);
    pair.run(10_000);
    const [unknown, refused] = client.events;
    assert.ok(unknown?.type === 'rejected' && unknown.reason === 8);
    assert.ok(refused?.type === 'rejected' && refused.consumer);
    assert.deepEqual(refused.privateData.slice(0, 4), Uint8Array.of(1, 2, 3, 0));
  });

  it('fails a connect by the network’s hint, and by the limit of its consumer', () => {
    const pair = new CmHcaPair();
    const { client, server } = pair;
    pair.filterMads(() => 0);
    client.connect(server);
    pair.run(1_000);
    const [gid] = pair.b.port.gids;
    assert.ok(gid);
    pair.a.driver.device.onUnreachable(gid);
    pair.run(1_000);
    client.connect(server, { timeoutUs: 300_000 });
    pair.run(300_000);
    assert.deepEqual(client.types, ['unreachable', 'timed-out']);
    assert.ok(client.cm.isIdle);
  });

  for (const message of ['REQ', 'REP', 'RTU', 'DREQ', 'DREP']) {
    for (const [fault, copies] of [
      ['lost', 0],
      ['duplicated', 2],
    ] as const) {
      it(`bears ${message} ${fault} once`, () => {
        const pair = new CmHcaPair();
        const { client, server } = pair;
        pair.tamper(message, 1, copies);
        pair.listen();
        client.connect(server);
        pair.run(2_000_000);
        server.connection?.disconnect();
        pair.run(10_000_000);
        const whole = ['established', 'disconnected', 'timewait-exit'];
        assert.deepEqual([client.types, server.types], [whole, whole]);
        assert.ok(client.cm.isIdle && server.cm.isIdle);
      });
    }
  }

  it('ends 200 connections of seeded loss and duplication in a defined way', async function () {
    this.timeout(60_000);
    for (let seed = 1; seed <= 200; seed++) {
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
      if (seed % 50 === 0) await client.close();
    }
  });
});
