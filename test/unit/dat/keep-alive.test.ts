import assert from 'node:assert/strict';
import {
  DatError,
  type EpAttributeOptions,
  type Ia,
  MemPrivileges,
  openIa,
} from '../../../core/index.js';
import { Fabric, mock } from '../../../providers/mock/index.js';
import { drain, texts } from '../../support/fake-endpoints.js';

const CLIENT = '192.0.2.1';
const SERVER = '192.0.2.2';
const SECOND_US = 1_000_000;
/** The ACK delay of the software HCA, which the side that connects adds. */
const ACK_DELAY = 15;
const REMOTE = MemPrivileges.ALL;

function sideOf(ia: Ia, attributes: EpAttributeOptions, qlen = 64) {
  const pz = ia.createPz();
  const evd = ia.createEvd({ qlen });
  const evds = { recvEvd: evd, requestEvd: evd, connectEvd: evd };
  const lmr = ia.allocate(4096, { pz, privileges: REMOTE });
  return { ia, pz, evd, lmr, ep: ia.createEndpoint({ pz, ...evds, attributes }) };
}
type Side = ReturnType<typeof sideOf>;

/** A client and a server, connected over virtual wires. */
class Pair {
  readonly fabric = new Fabric({ seed: 5, autoRun: false });
  readonly writes: { from: string; us: number }[] = [];
  client!: Side;
  server!: Side;

  static async connected(mine: EpAttributeOptions, theirs = mine, qlen?: number): Promise<Pair> {
    const pair = new Pair();
    await pair.open(mine, theirs, qlen);
    await pair.connect();
    return pair;
  }

  async open(mine: EpAttributeOptions, theirs = mine, qlen?: number): Promise<void> {
    const { fabric } = this;
    const ias: Ia[] = [];
    for (const address of [CLIENT, SERVER]) ias.push(await openIa(mock({ fabric, address })));
    this.client = sideOf(ias[0]!, mine, qlen);
    this.server = sideOf(ias[1]!, theirs, qlen);
    fabric.tap = (event, packet, us) => {
      // An RDMA WRITE ONLY of length 0: BTH, RETH and ICRC.
      const probe = packet.view.getUint8(0) === 0x0a && packet.length === 12 + 16 + 4;
      if (event === 'sent' && probe) this.writes.push({ from: packet.flow.from, us });
    };
  }

  async connect(server = this.server): Promise<void> {
    const { client, fabric } = this;
    const psp = server.ia.createPsp({ connQual: 7, evd: server.evd });
    client.ep.connect({ address: SERVER, connQual: 7 });
    await fabric.run({ forUs: 10_000 });
    const [request] = drain(server.evd);
    assert.ok(request?.type === 'connection-request');
    request.cr.accept(server.ep);
    await fabric.run({ forUs: 10_000 });
    for (const { evd } of [client, server]) assert.deepEqual(texts(drain(evd)), ['ESTABLISHED']);
    psp.free();
  }

  async pass(us: number): Promise<void> {
    await this.fabric.run({ forUs: us });
  }

  silence(): void {
    this.fabric.partition([CLIENT], [SERVER]);
  }

  async close(): Promise<void> {
    const closed = Promise.all([this.client, this.server].map(({ ia }) => ia.close()));
    await this.pass(60 * SECOND_US);
    await closed;
  }
}

/** What docs and attributes promise for a peer that is gone. */
function boundUs(keepAliveMs: number, ackTimeout: number, retryCount: number): number {
  return keepAliveMs * 1000 + 4 * (retryCount + 1) * 4.096 * 2 ** ackTimeout;
}

describe('keepAliveMs', () => {
  for (const [keepAliveMs, ackTimeout, retryCount] of [
    [10, 8, 0],
    [250, 12, 1],
    [1000, 15, 7],
    [60_000, 15, 7],
    [5000, 17, 3],
  ] as const) {
    const name = `${keepAliveMs} ms, ackTimeout ${ackTimeout}, ${retryCount} retries`;
    it(`notices a peer that is gone within its time: ${name}`, async () => {
      const pair = await Pair.connected({ keepAliveMs, transport: { ackTimeout, retryCount } });
      await pair.pass(3.3 * keepAliveMs * 1000);
      pair.silence();
      const sides = [
        {
          ...pair.client,
          limit: boundUs(keepAliveMs, Math.max(ackTimeout, ACK_DELAY) + 1, retryCount),
        },
        { ...pair.server, limit: boundUs(keepAliveMs, ackTimeout, retryCount) },
      ];
      const startUs = pair.fabric.clock.now();
      for (const { ep, evd, limit } of sides.sort((a, b) => a.limit - b.limit)) {
        await pair.pass(startUs + limit + 2000 - pair.fabric.clock.now());
        assert.equal(ep.state, 'DISCONNECTED', 'nothing has been asked for that would have told');
        const events = drain(evd);
        assert.deepEqual(texts(events), ['BROKEN']);
        const [broken] = events;
        assert.ok(broken?.type === 'connection');
        assert.equal(broken.reason, 'the peer has not answered a keep-alive');
      }
      await pair.close();
    });
  }

  it('is off by default: an idle connection stays, and nothing is sent', async () => {
    const pair = await Pair.connected({});
    const { sent } = pair.fabric.counters;
    pair.silence();
    await pair.pass(3600 * SECOND_US);
    assert.equal(pair.fabric.counters.sent, sent);
    assert.equal(pair.client.ep.state, 'CONNECTED');
    pair.fabric.heal();
    await pair.close();
  });

  it('asks once in that time, unseen by the consumer of either side', async () => {
    const pair = await Pair.connected({ keepAliveMs: 1000 }, {});
    const { client, server } = pair;
    const before = client.ep.counters();
    await pair.pass(100 * SECOND_US);
    assert.ok(pair.writes.every(({ from }) => from === CLIENT));
    assert.ok(pair.writes.length >= 99 && pair.writes.length <= 134, `${pair.writes.length}`);
    for (const { ep, evd } of [client, server]) {
      assert.deepEqual(drain(evd), []);
      const { state, requestIdle, recvIdle } = ep.getStatus();
      assert.deepEqual([state, requestIdle, recvIdle], ['CONNECTED', true, true]);
    }
    assert.deepEqual(client.ep.counters(), before);
    await pair.close();
  });

  const traffic: Readonly<Record<string, (pair: Pair) => void>> = {
    'sends of ours': ({ client, server }) => {
      server.ep.postRecv([], 1);
      client.ep.postSend([], 2);
    },
    'sends of the peer': ({ client, server }) => {
      client.ep.postRecv([], 1);
      server.ep.postSend([], 2);
    },
    'WRITEs of the peer, which no completion tells of here': ({ client, server }) => {
      const { address, rmrContext = 0 } = client.lmr;
      server.ep.postRdmaWrite(server.lmr.segment(0, 8), 3, { address, rmrContext });
    },
    'READs of the peer': ({ client, server }) => {
      const { address, rmrContext = 0 } = client.lmr;
      server.ep.postRdmaRead(server.lmr.segment(0, 8), 3, { address, rmrContext });
    },
  };
  for (const [name, move] of Object.entries(traffic)) {
    it(`does not ask while there are ${name}`, async () => {
      const pair = await Pair.connected({ keepAliveMs: 1000 }, {});
      for (let i = 0; i < 40; i++) {
        move(pair);
        await pair.pass(SECOND_US / 2);
        for (const { evd } of [pair.client, pair.server]) drain(evd);
      }
      assert.deepEqual(pair.writes, []);
      await pair.close();
    });
  }

  it('asks neither before the connection nor after its end', async () => {
    const pair = new Pair();
    await pair.open({ keepAliveMs: 100 });
    await pair.pass(10 * SECOND_US);
    const { client, server } = pair;
    const psp = server.ia.createPsp({ connQual: 7, evd: server.evd });
    client.ep.connect({ address: SERVER, connQual: 7 });
    await pair.pass(2 * SECOND_US);
    assert.equal(client.ep.state, 'ACTIVE_CONNECTION_PENDING');
    const [request] = drain(server.evd);
    assert.ok(request?.type === 'connection-request');
    assert.deepEqual(pair.writes, []);
    request.cr.accept(server.ep);
    await pair.pass(SECOND_US);
    assert.ok(pair.writes.length > 0);
    client.ep.disconnect('graceful');
    await pair.pass(SECOND_US);
    for (const { ep } of [client, server]) assert.equal(ep.state, 'DISCONNECTED');
    pair.writes.length = 0;
    psp.free();
    await pair.fabric.run({ untilIdle: true });
    assert.deepEqual(pair.writes, []);
    await pair.close();
  });

  it('takes none of the requests that the consumer may post', async () => {
    const attributes = { keepAliveMs: 1000, maxRequestDtos: 3, transport: { retryCount: 7 } };
    const pair = await Pair.connected(attributes, {});
    const { client, server, fabric } = pair;
    const asked = (): boolean => pair.writes.length > 0;
    pair.silence();
    await fabric.run({ until: asked, withinUs: SECOND_US });
    assert.equal(client.ep.requestsFree, 3);
    assert.equal(client.ep.getStatus().requestIdle, true);
    for (const cookie of [1, 2, 3]) {
      server.ep.postRecv([], cookie);
      client.ep.postSend([], cookie);
    }
    assert.equal(client.ep.requestsFree, 0);
    const full = { subtype: 'DAT_RESOURCE_CREDITS' };
    assert.throws(() => client.ep.postSend([], 4), full);
    fabric.heal();
    await pair.pass(SECOND_US);
    assert.deepEqual(texts(drain(client.evd)), ['dto 1 SUCCESS', 'dto 2 SUCCESS', 'dto 3 SUCCESS']);
    assert.equal(client.ep.requestsFree, 3);
    await pair.close();
  });

  it('flushes in order what stands behind the question', async () => {
    const pair = await Pair.connected({ keepAliveMs: 1000 }, {});
    const { client, fabric } = pair;
    pair.silence();
    await fabric.run({ until: () => pair.writes.length > 0, withinUs: SECOND_US });
    client.ep.postRecv([], 9);
    for (const cookie of [1, 2]) client.ep.postSend([], cookie);
    await pair.pass(20 * SECOND_US);
    const seen = texts(drain(client.evd));
    assert.equal(seen.at(-1), 'BROKEN');
    const sends = ['dto 1 FLUSHED', 'dto 2 FLUSHED'];
    assert.deepEqual(
      seen.filter((text) => sends.includes(text)),
      sends,
    );
    assert.deepEqual(seen.toSorted(), ['BROKEN', ...sends, 'dto 9 FLUSHED']);
    await pair.close();
  });

  it('fills no queue of a consumer who takes nothing', async () => {
    const pair = await Pair.connected({ keepAliveMs: 20, maxRequestDtos: 4 }, {}, 4);
    const { client, server } = pair;
    for (const cookie of [1, 2, 3]) {
      server.ep.postRecv([], cookie);
      client.ep.postSend([], cookie);
      await pair.pass(100_000);
    }
    const { entries } = client.evd.feed.cq.ring;
    await pair.pass(20_000 * 10 * entries);
    assert.ok(pair.writes.length > 9 * entries);
    client.ep.postRecv([], 4);
    server.ep.postSend([], 5);
    await pair.pass(SECOND_US);
    const sends = [1, 2, 3].map((cookie) => `dto ${cookie} SUCCESS`);
    assert.deepEqual(texts(drain(client.evd)), [...sends, 'dto 4 SUCCESS']);
    assert.equal(client.ep.state, 'CONNECTED');
    await pair.close();
  });

  it('is one of the attributes that modify changes', async () => {
    const pair = new Pair();
    await pair.open({ maxRequestDtos: 2 });
    const { client } = pair;
    client.ep.modify({ attributes: { keepAliveMs: 500 } });
    assert.equal(client.ep.query().attributes.keepAliveMs, 500);
    await pair.connect();
    await pair.pass(10 * SECOND_US);
    assert.ok(pair.writes.length > 10);
    const change = (): void => client.ep.modify({ attributes: { keepAliveMs: 0 } });
    assert.throws(change, { code: 'DAT_INVALID_STATE' });
    client.ep.disconnect();
    await pair.pass(SECOND_US);
    client.ep.reset();
    change();
    pair.writes.length = 0;
    for (const { evd } of [client, pair.server]) drain(evd);
    await pair.connect(sideOf(pair.server.ia, {}));
    await pair.pass(10 * SECOND_US);
    assert.deepEqual(pair.writes, []);
    await pair.close();
  });

  it('is refused beyond its limits, which the error names', async () => {
    const pair = new Pair();
    await pair.open({});
    const { ia, pz } = pair.client;
    for (const keepAliveMs of [-1, 1, 9, 0.5, 10.5, 86_400_001, Infinity, NaN, '10' as never]) {
      const create = (): unknown => ia.createEndpoint({ pz, attributes: { keepAliveMs } });
      assert.throws(create, (error) => {
        assert.ok(error instanceof DatError);
        assert.deepEqual([error.code, error.value], ['DAT_INVALID_PARAMETER', keepAliveMs]);
        assert.match(error.message, /keepAliveMs.*0 \(off\), or an integer from 10 to 86400000/);
        return true;
      });
    }
    for (const keepAliveMs of [0, 10, 86_400_000]) {
      ia.createEndpoint({ pz, attributes: { keepAliveMs } }).free();
    }
    await pair.close();
  });
});
