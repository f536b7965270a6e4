/** Endpoints for datagrams: posting, bad input, failures, and what is held by whom. */
import assert from 'node:assert/strict';
import { inspect } from 'node:util';
import {
  CompletionFlags,
  DatError,
  EventBatch,
  type LmrSegment,
  MemPrivileges,
  openIa,
  UdEp,
} from '../../../core/index.js';
import { Fabric, mock } from '../../../providers/mock/index.js';
import {
  CLIENT,
  datagramsOf,
  hcaOf,
  SERVER,
  udPair,
  type UdPair,
  udSide,
} from '../../support/ud-pair.js';

const { GRH_BYTES } = UdEp;

const code = (name: string, message?: RegExp) => (error: unknown) =>
  DatError.isDatError(error) && error.code === name && (message?.test(error.message) ?? true);

/** Where the server's endpoint is. */
const serverHandle = ({ client, server }: UdPair) =>
  client.ep.createAddressHandle({ address: SERVER, qpn: server.ep.qpn });

describe('Endpoint for datagrams: posting', () => {
  it('shows its events through a batch, and as a stream when it has no EVD', async () => {
    const pair = await udPair();
    const { fabric, client, server } = pair;
    const own = server.ia.createUdEndpoint({ pz: server.pz });
    const seen: string[] = [];
    own.completions$.subscribe((event) => seen.push(`${event.operation} ${event.cookie}`));
    assert.throws(() => server.ep.completions$, code('DAT_INVALID_STATE'));
    own.postRecv(server.lmr.segment(0, 100), 7);
    const to = client.ep.createAddressHandle({ address: SERVER, qpn: own.qpn });
    client.ep.postSendUdWithImmediate(client.lmr.segment(0, 5), to, 8, 9);
    await fabric.run({ forUs: 1_000 });
    assert.deepEqual(seen, ['15 7']);
    const batch = new EventBatch(4);
    assert.equal(client.evd.dequeueInto(batch), 1);
    assert.deepEqual([batch.cookies[0], batch.operations[0], batch.lengths[0]], [8, 13, 5]);
    const [event] = batch.events;
    assert.ok(event?.type === 'datagram' && event.ep === client.ep);
    own.free();
    await pair.close();
  });

  it('keeps order, suppresses successes that nobody wants, and reclaims their places', async () => {
    const pair = await udPair({ maxRequestDtos: 4, maxRecvDtos: 64 });
    const { fabric, client, server } = pair;
    const to = serverHandle(pair);
    for (let i = 0; i < 30; i++) {
      server.ep.postRecv(server.lmr.segment(i * 64, 64), i);
      client.lmr.bytes[0] = i;
      const flags = i % 10 === 9 ? CompletionFlags.DEFAULT : CompletionFlags.SUPPRESS;
      client.ep.postSendUd(client.lmr.segment(0, 1), to, i, flags);
      await fabric.run({ forUs: 100 });
    }
    assert.deepEqual(datagramsOf(client), [
      'SEND_UD 9 SUCCESS',
      'SEND_UD 19 SUCCESS',
      'SEND_UD 29 SUCCESS',
    ]);
    assert.equal(datagramsOf(server).length, 30);
    for (let i = 0; i < 30; i++) assert.equal(server.lmr.bytes[i * 64 + GRH_BYTES], i);
    await pair.close();
  });

  it('knows the sources of many datagrams that wait, whatever is posted meanwhile', async () => {
    const pair = await udPair({ maxRecvDtos: 2 });
    const { fabric, client, server } = pair;
    const others = [client.ep, client.ia.createUdEndpoint({ pz: client.pz })];
    for (let i = 0; i < 12; i++) {
      // The same buffer again and again: what is in it then is of a later datagram.
      server.ep.postRecv(server.lmr.segment(0, 64), i);
      const ep = others[i % 2];
      const to = ep?.createAddressHandle({ address: SERVER, qpn: server.ep.qpn });
      if (ep && to) ep.postSendUd(client.lmr.segment(0, 1), to, i);
      await fabric.run({ forUs: 100 });
      // Seen by core, not yet by the consumer.
      server.ia.core.takeInCompletions();
    }
    const sources: (number | undefined)[] = [];
    for (let event = server.evd.dequeue(); event; event = server.evd.dequeue()) {
      assert.ok(event.type === 'datagram');
      assert.equal(event.source?.address, CLIENT);
      sources.push(event.source?.qpn);
    }
    assert.deepEqual(
      sources,
      Array.from({ length: 12 }, (_, i) => others[i % 2]?.qpn),
    );
    await pair.close();
  });

  it('works over IPv6, sources included', async () => {
    const fabric = new Fabric({ seed: 1, autoRun: false });
    const [client, server] = [await udSide(fabric, 'fd00::1'), await udSide(fabric, 'fd00::2')];
    server.ep.postRecv(server.lmr.segment(0, 64), 1);
    const to = client.ep.createAddressHandle({ address: 'fd00::2', qpn: server.ep.qpn });
    client.ep.postSendUd(client.lmr.segment(0, 1), to);
    await fabric.run({ forUs: 1_000 });
    const event = server.evd.dequeue();
    assert.ok(event?.type === 'datagram');
    assert.deepEqual(event.source, { address: 'fd00::1', qpn: client.ep.qpn });
    const ipv4 = { address: SERVER, qpn: 5 };
    assert.throws(() => client.ep.createAddressHandle(ipv4), code('DAT_INVALID_ADDRESS', /IPv4/));
    void client.ia.close();
    void server.ia.close();
    await fabric.run({ forUs: 5_000_000 });
  });

  it('loses what finds no receive, and what does not fit: the receive stays', async () => {
    const pair = await udPair();
    const { fabric, client, server } = pair;
    const to = serverHandle(pair);
    client.ep.postSendUd(client.lmr.segment(0, 1), to, 1);
    await fabric.run({ forUs: 100 });
    server.ep.postRecv(server.lmr.segment(0, GRH_BYTES + 4), 1);
    client.ep.postSendUd(client.lmr.segment(0, 5), to, 2);
    await fabric.run({ forUs: 100 });
    assert.deepEqual(datagramsOf(server), []);
    client.ep.postSendUd(client.lmr.segment(0, 4), to, 3);
    await fabric.run({ forUs: 100 });
    assert.deepEqual(datagramsOf(server), ['RECV_UD 1 SUCCESS']);
    assert.deepEqual(
      datagramsOf(client),
      [1, 2, 3].map((i) => `SEND_UD ${i} SUCCESS`),
    );
    await pair.close();
  });
});

describe('Endpoint for datagrams: multicast', () => {
  const GROUP = '239.1.2.3';

  it('brings what is sent to a group to those that have joined, until they leave', async () => {
    const pair = await udPair();
    const { fabric, client, server } = pair;
    const to = client.ep.createAddressHandle({ address: GROUP, qpn: UdEp.MULTICAST_QPN });
    const send = async (cookie: number): Promise<string[]> => {
      server.ep.postRecv(server.lmr.segment(0, 64), cookie);
      client.ep.postSendUd(client.lmr.segment(0, 1), to, cookie);
      await fabric.run({ forUs: 100 });
      return datagramsOf(server);
    };
    assert.deepEqual(await send(1), []);
    server.ep.joinMulticast(GROUP);
    server.ep.joinMulticast(GROUP);
    assert.deepEqual(await send(2), ['RECV_UD 1 SUCCESS']);
    server.ep.leaveMulticast(GROUP);
    server.ep.leaveMulticast(GROUP);
    assert.deepEqual(await send(3), []);
    server.ep.joinMulticast(`::ffff:${GROUP}`);
    server.ep.leaveMulticast(GROUP);
    assert.deepEqual(await send(4), [], 'another spelling is the same group');
    const silent = { loopback: false, sendOnly: true };
    server.ep.joinMulticast(GROUP, silent);
    server.ep.joinMulticast(GROUP, silent);
    for (const other of [{}, { loopback: 1 as never, sendOnly: true }]) {
      assert.throws(() => server.ep.joinMulticast(GROUP, other), code('DAT_INVALID_PARAMETER'));
    }
    server.ep.leaveMulticast(GROUP);
    assert.throws(() => server.ep.joinMulticast('x'), code('DAT_INVALID_ADDRESS'));
    assert.throws(() => server.ep.joinMulticast(SERVER), DatError.isDatError);
    await pair.close();
  });

  it('multicastLoopback is the default of loopback: own datagrams come back, or not', async () => {
    for (const multicastLoopback of [true, false]) {
      const pair = await udPair({ multicastLoopback });
      const { fabric, server } = pair;
      const to = server.ep.createAddressHandle({ address: GROUP, qpn: UdEp.MULTICAST_QPN });
      const ownCopies = async (options?: { loopback: boolean }): Promise<number> => {
        server.ep.joinMulticast(GROUP, options);
        server.ep.postRecv(server.lmr.segment(0, 64), 1);
        server.ep.postSendUd(server.lmr.segment(0, 1), to, 1);
        await fabric.run({ forUs: 100 });
        server.ep.leaveMulticast(GROUP);
        return datagramsOf(server).filter((text) => text.startsWith('RECV')).length;
      };
      assert.equal(await ownCopies(), Number(multicastLoopback));
      const other = !multicastLoopback;
      assert.equal(await ownCopies({ loopback: other }), Number(other));
      await pair.close();
    }
    const wrong = udPair({ multicastLoopback: 1 as never });
    await assert.rejects(wrong, code('DAT_INVALID_PARAMETER'));
  });

  it('is refused where the device has none', async () => {
    const pair = await udPair();
    const device = pair.fabric.node(SERVER)?.device;
    assert.ok(device);
    Object.defineProperty(device, 'capabilities', { value: new Set(['rc', 'ud']) });
    assert.throws(() => pair.server.ep.joinMulticast(GROUP), code('DAT_MODEL_NOT_SUPPORTED'));
    await pair.close();
  });
});

describe('Endpoint for datagrams: failures', () => {
  it('goes on after a send that failed: those behind it flush, later ones leave', async () => {
    const pair = await udPair();
    const { fabric, client, server } = pair;
    const one = client.lmr.segment(0, 1);
    for (let i = 0; i < 5; i++) server.ep.postRecv(server.lmr.segment(i * 64, 64), i);
    const to = serverHandle(pair);
    client.ep.postSendUd(one, to, 1);
    await fabric.run({ forUs: 100 });
    // The provider loses the handle, which no check of ours can see.
    hcaOf(fabric, CLIENT).addressHandles.destroyAll();
    for (const cookie of [2, 3]) client.ep.postSendUd(one, to, cookie);
    await fabric.run({ forUs: 100 });
    const again = serverHandle(pair);
    for (const cookie of [4, 5]) client.ep.postSendUd(one, again, cookie);
    await fabric.run({ forUs: 100 });
    assert.deepEqual(datagramsOf(client), [
      'SEND_UD 1 SUCCESS',
      'SEND_UD 2 LOCAL_EP',
      'SEND_UD 3 FLUSHED',
      'SEND_UD 4 FLUSHED',
      'SEND_UD 5 FLUSHED',
    ]);
    // Seen by now: the queue pair has been taken back, and what comes next leaves.
    client.ep.postSendUd(one, again, 6);
    await fabric.run({ forUs: 100 });
    assert.deepEqual(datagramsOf(client), ['SEND_UD 6 SUCCESS']);
    assert.equal(datagramsOf(server).length, 2);
    assert.equal(client.ep.state, 'READY');
    await pair.close();
  });

  it('flushes what is posted when its device is gone, and says so once', async () => {
    const pair = await udPair();
    const { fabric, client } = pair;
    const to = serverHandle(pair);
    client.ep.postRecv(client.lmr.segment(0, 64), 1);
    fabric.node(CLIENT)?.remove();
    await fabric.run({ forUs: 100 });
    assert.deepEqual(datagramsOf(client), ['RECV_UD 1 FLUSHED']);
    client.ep.postSendUd(client.lmr.segment(0, 1), to, 2);
    await fabric.run({ forUs: 100 });
    assert.deepEqual(datagramsOf(client), ['SEND_UD 2 FLUSHED']);
    assert.equal(client.ep.state, 'ERROR');
    const told: unknown[] = [];
    for (let one = client.ia.asyncEvd.dequeue(); one; one = client.ia.asyncEvd.dequeue()) {
      if (one.type === 'async-error') told.push(one.object);
    }
    assert.deepEqual(told, [client.ia, client.ep]);
    await pair.close();
  });

  it('is in ERROR when its queue pair fails, says so, and is usable after a reset', async () => {
    const fabric = new Fabric({ seed: 1, autoRun: false });
    const client = await udSide(fabric, CLIENT);
    const server = await udSide(fabric, SERVER);
    const qpn = server.ep.qpn;
    const hca = hcaOf(fabric, SERVER);
    const qp = [...hca.queuePairs].find((candidate) => candidate.qpn === qpn);
    assert.ok(qp);
    server.ep.postRecv(server.lmr.segment(0, 64), 1);
    qp.eventHandler(1);
    await fabric.run({ forUs: 100 });
    assert.equal(server.ep.state, 'ERROR');
    assert.deepEqual(datagramsOf(server), ['RECV_UD 1 FLUSHED']);
    const broken = server.ia.asyncEvd.dequeue();
    assert.ok(broken?.type === 'async-error' && broken.object === server.ep);
    server.ep.reset();
    assert.equal(server.ep.state, 'READY');
    assert.notEqual(server.ep.qpn, qpn);
    server.ep.postRecv(server.lmr.segment(0, 64), 2);
    const to = client.ep.createAddressHandle({ address: SERVER, qpn: server.ep.qpn });
    client.ep.postSendUd(client.lmr.segment(0, 1), to);
    await fabric.run({ forUs: 100 });
    assert.deepEqual(datagramsOf(server), ['RECV_UD 2 SUCCESS']);
    void client.ia.close();
    void server.ia.close();
    await fabric.run({ forUs: 5_000_000 });
  });
});

describe('Endpoint for datagrams: bad input', () => {
  it('is refused, naming value and limit', async () => {
    const pair = await udPair({ maxRequestDtos: 2, maxRecvDtos: 2, maxRequestIov: 2 });
    const { client } = pair;
    const { ep, lmr, ia, pz } = client;
    const to = serverHandle(pair);
    const one = lmr.segment(0, 1);
    const otherPz = ia.createPz();
    const foreign = ia.allocate(64, { pz: otherPz });
    const readOnly = ia.allocate(64, { pz, privileges: MemPrivileges.LOCAL_READ });
    const otherEp = ia.createUdEndpoint({ pz: otherPz });
    const strange = otherEp.createAddressHandle({ address: SERVER, qpn: 5 });
    const freed = serverHandle(pair);
    freed.free();
    freed.free();
    const cases: [() => unknown, string, RegExp?][] = [
      [() => ep.postSendUd(lmr.segment(0, 1025), to), 'DAT_LENGTH_ERROR', /1025 bytes.*1024/],
      [() => ep.postSendUd([one, one, one], to), 'DAT_INVALID_PARAMETER', /<= 2/],
      [() => ep.postSendUd(one, freed), 'DAT_INVALID_HANDLE', /freed/],
      [() => ep.postSendUd(one, {} as never), 'DAT_INVALID_HANDLE', /not an address handle/],
      [() => ep.postSendUd(one, strange), 'DAT_PROTECTION_VIOLATION', /zone/],
      [() => ep.postSendUd(foreign.segment(), to), 'DAT_PROTECTION_VIOLATION'],
      [() => ep.postSendUd(one, to, -1), 'DAT_INVALID_PARAMETER', /cookie/],
      [() => ep.postSendUd(one, to, 1, CompletionFlags.BARRIER_FENCE), 'DAT_INVALID_PARAMETER'],
      [() => ep.postSendUdWithImmediate(one, to, 1, 2 ** 32), 'DAT_INVALID_PARAMETER', /immediate/],
      [() => ep.postRecv(lmr.segment(0, 39)), 'DAT_LENGTH_ERROR', /39 bytes.*40/],
      [() => ep.postRecv([]), 'DAT_INVALID_PARAMETER', /segments/],
      [() => ep.postRecv(readOnly.segment()), 'DAT_PRIVILEGES_VIOLATION'],
      [() => ep.createAddressHandle({ address: 'x', qpn: 5 }), 'DAT_INVALID_ADDRESS'],
      [() => ep.createAddressHandle({ address: SERVER, qpn: 1 }), 'DAT_INVALID_PARAMETER', /qpn/],
      [
        () => ep.createAddressHandle({ address: SERVER, qpn: 5, qkey: -1 }),
        'DAT_INVALID_PARAMETER',
      ],
      [() => ep.serve({ connQual: 0 }), 'DAT_INVALID_PARAMETER', /connQual/],
      [() => ep.serve({ connQual: 5, backlog: 0 }), 'DAT_INVALID_PARAMETER', /backlog/],
      [() => ep.serve({ connQual: 5, answer: 1 as never }), 'DAT_INVALID_PARAMETER', /function/],
      [() => ia.createUdEndpoint({ pz, attributes: { qkey: 1.5 } }), 'DAT_INVALID_PARAMETER'],
      [
        () => ia.createUdEndpoint({ pz, attributes: { maxRecvDtos: 0 } }),
        'DAT_INVALID_PARAMETER',
        /maxRecvDtos is 0/,
      ],
      [() => ia.createUdEndpoint({ pz: {} as never }), 'DAT_INVALID_HANDLE'],
    ];
    for (const [call, name, message] of cases) {
      assert.throws(call, code(name, message), call.toString());
    }
    // Nothing of it has been posted.
    assert.deepEqual([ep.requestsFree, ep.receivesFree], [2, 2]);
    for (let i = 0; i < 2; i++) ep.postRecv(lmr.segment(0, 64), i);
    assert.throws(() => ep.postRecv(lmr.segment(0, 64)), code('DAT_INSUFFICIENT_RESOURCES'));
    assert.match(inspect(ep), /UdEp \{.*receives: 2\/2/);
    assert.match(inspect(to), /UdAddressHandle \{.*192\.0\.2\.2/);
    await pair.close();
    assert.throws(() => ep.postRecv(lmr.segment(0, 64)), code('DAT_INVALID_HANDLE'));
    assert.ok(to.isFreed);
  });

  it('is refused when the device has no datagrams', async () => {
    const fabric = new Fabric({ seed: 1, autoRun: false });
    const { ia, pz } = await udSide(fabric, CLIENT);
    const device = fabric.node(CLIENT)?.device;
    assert.ok(device);
    Object.defineProperty(device, 'capabilities', { value: new Set(['rc']) });
    assert.throws(
      () => ia.createUdEndpoint({ pz }),
      code('DAT_MODEL_NOT_SUPPORTED', /no unreliable/),
    );
    void ia.close();
    await fabric.run({ forUs: 5_000_000 });
  });
});

describe('Endpoint for datagrams: who holds what', () => {
  it('holds its zone, its regions while posted, its address handles', async () => {
    const pair = await udPair();
    const { client, fabric } = pair;
    const { ep, lmr, pz } = client;
    const to = serverHandle(pair);
    ep.postRecv(lmr.segment(0, 64), 1);
    assert.throws(() => lmr.free(), code('DAT_INVALID_STATE'));
    assert.throws(() => pz.free(), code('DAT_INVALID_STATE'));
    ep.postSendUd(lmr.segment(0, 4), to, 2);
    to.free();
    await fabric.run({ forUs: 100 });
    assert.deepEqual(datagramsOf(client), ['SEND_UD 2 SUCCESS']);
    ep.free();
    assert.throws(() => ep.free(), code('DAT_INVALID_HANDLE'));
    lmr.free();
    pz.free();
    await pair.close();
  });

  it('leaves nothing behind when its adapter closes with everything in use', async () => {
    const pair = await udPair();
    const { client, server } = pair;
    server.ep.serve({ connQual: 5 });
    for (let i = 0; i < 20; i++)
      client.ep.postSendUd(client.lmr.segment(0, 4), serverHandle(pair), i);
    const refused = assert.rejects(
      client.ep.resolve({ address: SERVER, connQual: 9 }),
      code('DAT_ABORT'),
    );
    await pair.close();
    await refused;
    assert.equal(hcaOf(pair.fabric, CLIENT).queuePairs.size, 0);
  });

  it('can be traced like any other object', async () => {
    const fabric = new Fabric({ seed: 1, autoRun: false });
    const lines: string[] = [];
    const logger = {
      isDebugEnabled: () => true,
      debug: (text: string) => void lines.push(text),
      info: () => undefined,
      warn: () => undefined,
      error: () => undefined,
      child: () => logger,
    };
    const ia = await openIa(mock({ fabric, address: CLIENT }), { logger });
    const pz = ia.createPz();
    const ep = ia.createUdEndpoint({ pz });
    const to = ep.createAddressHandle({ address: SERVER, qpn: 5 });
    const segment: LmrSegment = ia.allocate(64, { pz }).segment();
    ep.postSendUd(segment, to, 3, CompletionFlags.SUPPRESS);
    const line = lines.find((text) => text.startsWith('ep.postSendUd'));
    assert.equal(line, `ep.postSendUd(ep=${ep.id}, to=${to.id}, cookie=3, flags=SUPPRESS)`);
    void ia.close();
    await fabric.run({ forUs: 5_000_000 });
  });
});
