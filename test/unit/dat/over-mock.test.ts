import assert from 'node:assert/strict';
import {
  CompletionFlags,
  type DatEvent,
  type Ep,
  type Evd,
  type Ia,
  type Lmr,
  MemPrivileges,
  openIa,
  type Pz,
  RemoteSegment,
} from '../../../core/index.js';
import { Fabric, mock } from '../../../providers/mock/index.js';
import { drain, texts } from '../../support/fake-endpoints.js';

interface Side {
  readonly ia: Ia;
  readonly pz: Pz;
  readonly evd: Evd;
  readonly ep: Ep;
  readonly lmr: Lmr;
}

const CLIENT = '192.0.2.1';
const SERVER = '192.0.2.2';

async function open(fabric: Fabric, address: string): Promise<Side> {
  const ia = await openIa(mock({ fabric, address }));
  const pz = ia.createPz();
  const evd = ia.createEvd({ qlen: 256 });
  const ep = ia.createEndpoint({ pz, recvEvd: evd, requestEvd: evd, connectEvd: evd });
  const lmr = ia.allocate(1 << 16, { pz, privileges: MemPrivileges.ALL });
  return { ia, pz, evd, ep, lmr };
}

interface Pair {
  readonly fabric: Fabric;
  readonly client: Side;
  readonly server: Side;
}

/** Connected; the server has accepted by an upcall-free loop. */
async function connect(): Promise<Pair> {
  const fabric = new Fabric({ seed: 1, autoRun: false });
  const client = await open(fabric, CLIENT);
  const server = await open(fabric, SERVER);
  const psp = server.ia.createPsp({ connQual: 7471, evd: server.evd });
  client.ep.connect({ address: SERVER, connQual: 7471, privateData: Uint8Array.of(1, 2) });
  let request: DatEvent | undefined;
  const until = (): boolean => (request = server.evd.dequeue()) !== undefined;
  await fabric.run({ until });
  assert.ok(request?.type === 'connection-request');
  assert.deepEqual([...request.cr.privateData.subarray(0, 2)], [1, 2]);
  server.ep.postRecv(server.lmr.segment(0, 64), 1);
  request.cr.accept(server.ep, { privateData: Uint8Array.of(3) });
  psp.free();
  await fabric.run({ until: () => client.ep.state === 'CONNECTED' });
  const [established] = drain(client.evd);
  assert.ok(established?.type === 'connection');
  assert.equal(established.privateData[0], 3);
  return { fabric, client, server };
}

async function end({ fabric, client, server }: Pair): Promise<void> {
  const closed = Promise.all([client.ia.close(), server.ia.close()]);
  await fabric.run({ forUs: 10_000_000 });
  await closed;
}

describe('core over the software HCA, CM and MAD of mock', () => {
  it('sends, writes, reads, and disconnects in order', async () => {
    const pair = await connect();
    const { fabric, client, server } = pair;
    client.lmr.bytes.set([7, 8, 9]);
    client.ep.postSend(client.lmr.segment(0, 3), 5);
    await fabric.run({ forUs: 10_000 });
    assert.deepEqual(texts(drain(server.evd)), ['ESTABLISHED', 'dto 1 SUCCESS']);
    assert.deepEqual([...server.lmr.bytes.subarray(0, 3)], [7, 8, 9]);
    assert.deepEqual(texts(drain(client.evd)), ['dto 5 SUCCESS']);

    const { address, rmrContext = 0 } = server.lmr;
    const remote = new RemoteSegment({ address, rmrContext });
    client.lmr.bytes.fill(0xaa, 0, 10_000);
    const segment = client.lmr.segment(0, 10_000);
    client.ep.postRdmaWrite(segment, 6, remote.seek(20_000), CompletionFlags.SUPPRESS);
    const sink = client.lmr.segment(40_000, 10_000);
    client.ep.postRdmaRead(sink, 7, remote, CompletionFlags.BARRIER_FENCE);
    await fabric.run({ forUs: 50_000 });
    assert.deepEqual(texts(drain(client.evd)), ['dto 7 SUCCESS']);
    assert.equal(server.lmr.bytes[29_999], 0xaa);
    assert.equal(server.lmr.bytes[30_000], 0);
    assert.deepEqual(sink.bytes, segment.bytes);
    assert.equal(client.lmr.inFlight, 0);

    client.ep.postRecv(client.lmr.segment(), 9);
    client.ep.postRdmaWrite(segment, 8, remote, CompletionFlags.SUPPRESS);
    client.ep.disconnect('graceful');
    await fabric.run({ forUs: 1_000_000 });
    assert.deepEqual(texts(drain(client.evd)), ['dto 9 FLUSHED', 'DISCONNECTED']);
    assert.deepEqual(texts(drain(server.evd)), ['DISCONNECTED']);
    await end(pair);
  });

  it('breaks on both sides when a write reaches what was not granted', async () => {
    const pair = await connect();
    const { fabric, client, server } = pair;
    const remote = { address: server.lmr.address, rmrContext: 0x1234 };
    client.ep.postRdmaWrite(client.lmr.segment(0, 8), 5, remote);
    client.ep.postSend(client.lmr.segment(0, 8), 6);
    await fabric.run({ forUs: 1_000_000 });
    const events = drain(client.evd);
    assert.deepEqual(texts(events), ['dto 5 REMOTE_ACCESS', 'dto 6 FLUSHED', 'BROKEN']);
    const broken = events.at(-1);
    assert.ok(broken?.type === 'connection' && (broken.flightRecord?.length ?? 0) > 3);
    await fabric.run({ forUs: 1_000_000 });
    const there = texts(drain(server.evd));
    assert.equal(there.filter((text) => ['BROKEN', 'DISCONNECTED'].includes(text)).length, 1);
    assert.ok(there.includes('dto 1 FLUSHED'));
    await end(pair);
  });

  it('connects again after reset, with another queue pair number', async () => {
    const pair = await connect();
    const { fabric, client, server } = pair;
    const first = client.ep.qpn;
    client.ep.disconnect();
    await fabric.run({ forUs: 1_000_000 });
    assert.ok(texts(drain(server.evd)).includes('DISCONNECTED'));
    for (const side of [client, server]) {
      drain(side.evd);
      side.ep.reset();
    }
    assert.notEqual(client.ep.qpn, first);
    server.ia.createPsp({ connQual: 7472, evd: server.evd });
    client.ep.connect({ address: SERVER, connQual: 7472 });
    await fabric.run({ forUs: 100_000 });
    const [request] = drain(server.evd);
    assert.ok(request?.type === 'connection-request');
    request.cr.accept(server.ep);
    server.ep.postRecv(server.lmr.segment(), 2);
    await fabric.run({ forUs: 100_000 });
    client.ep.postSend([], 3);
    await fabric.run({ forUs: 100_000 });
    assert.deepEqual(texts(drain(server.evd)), ['ESTABLISHED', 'dto 2 SUCCESS']);
    await end(pair);
  });

  it('is told when nobody listens, when the consumer refuses, when nobody is there', async () => {
    const fabric = new Fabric({ seed: 2, autoRun: false });
    const client = await open(fabric, CLIENT);
    const server = await open(fabric, SERVER);
    client.ep.connect({ address: SERVER, connQual: 1 });
    await fabric.run({ forUs: 1_000_000 });
    assert.deepEqual(texts(drain(client.evd)), ['NON_PEER_REJECTED']);
    client.ep.reset();
    server.ia.createPsp({ connQual: 2, evd: server.evd });
    client.ep.connect({ address: SERVER, connQual: 2 });
    await fabric.run({ forUs: 100_000 });
    const [request] = drain(server.evd);
    assert.ok(request?.type === 'connection-request');
    request.cr.reject({ privateData: Uint8Array.of(42) });
    await fabric.run({ forUs: 100_000 });
    const [refused] = drain(client.evd);
    assert.ok(refused?.type === 'connection');
    assert.deepEqual(texts([refused]), ['PEER_REJECTED']);
    assert.equal(refused.privateData[0], 42);
    client.ep.reset();
    client.ep.connect({ address: '192.0.2.99', connQual: 2, timeoutMs: 500 });
    await fabric.run({ forUs: 600_000 });
    assert.match(texts(drain(client.evd)).join(), /^(TIMED_OUT|UNREACHABLE)$/);
    await end({ fabric, client, server });
  });
});
