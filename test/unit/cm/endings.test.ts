/** Crossing disconnects, peers that come back, messages for nobody, and closing the module. */
import assert from 'node:assert/strict';
import { type CmEvent, gidFromIp, QpState } from '../../../core/spi/index.js';
import type { Connection } from '../../../plugins/cm/connection/connection.js';
import { CM_ATTRIBUTE } from '../../../plugins/cm/wire/cm-codec.js';
import { SeededRandom } from '../../../providers/mock/index.js';
import { CmPair, PARAMETERS, SERVICE, messageName, typesOf } from '../../support/cm-pair.js';
import { FakeNode } from '../../support/fake-node.js';

const NONE = new Uint8Array(0);

describe('CM: endings', () => {
  it('lets two DREQs cross: each side answers, neither reports twice', async () => {
    const pair = new CmPair();
    const { active, passive } = await pair.established();
    active.connection.disconnect();
    passive.connection.disconnect();
    active.connection.disconnect();
    await pair.world.run();
    for (const { events } of [active, passive]) {
      assert.deepEqual(events.slice(1), [
        { type: 'disconnected', byPeer: false },
        { type: 'timewait-exit' },
      ]);
    }
    assert.deepEqual(pair.messages.slice(3).sort(), ['DREP', 'DREP', 'DREQ', 'DREQ']);
    assert.ok(pair.a.cm.isIdle && pair.b.cm.isIdle);
  });

  for (const end of ['disconnect', 'abandon', 'close', 'stale'] as const) {
    for (const first of ['active', 'passive'] as const) {
      it(`moves both queue pairs to ERR before DREQ and DREP: ${first}, ${end}`, async () => {
        const pair = new CmPair();
        const sides = await pair.established();
        const other = sides[first === 'active' ? 'passive' : 'active'];
        const states: [string, number][] = [];
        pair.network.fate = (parcel) => {
          const name = messageName(parcel);
          states.push([name, name === 'DREQ' ? sides[first].qp.state : other.qp.state]);
          return [10];
        };
        (sides[first].connection as Connection).dispatch(end);
        await pair.world.run();
        assert.deepEqual(states, [
          ['DREQ', QpState.ERR],
          ['DREP', QpState.ERR],
        ]);
      });
    }
  }

  it('says nothing after abandon, and sends one DREQ or REJ', async () => {
    const pair = new CmPair();
    const { active, passive } = await pair.established();
    active.connection.abandon();
    active.connection.disconnect();
    assert.equal(active.connection.state, 'TIMEWAIT');
    assert.equal(pair.a.cm.counters.unexpected, 0);
    await pair.world.run();
    assert.deepEqual(typesOf(active.events), ['established']);
    assert.deepEqual(typesOf(passive.events), ['established', 'disconnected', 'timewait-exit']);
    assert.deepEqual(pair.messages.slice(3), ['DREQ', 'DREP']);

    const pending = pair.connect();
    pending.connection.abandon();
    await pair.world.run();
    assert.deepEqual(pending.events, []);
    assert.ok(pair.a.cm.isIdle);
  });

  it('takes back even an event that is under way', async () => {
    const pair = new CmPair();
    let seen: CmEvent[] = [];
    pair.listen((request) => {
      const { connection, events } = pair.accept(request);
      seen = events;
      connection.notifyEstablished();
      connection.abandon();
    });
    pair.connect();
    await pair.world.run();
    assert.deepEqual(seen, []);
  });

  it('ends by a consumer that disconnects while it connects, on either side', async () => {
    const pair = new CmPair();
    let passive: { events: CmEvent[] } | undefined;
    pair.listen((request) => {
      const side = pair.accept(request);
      side.connection.disconnect();
      passive = side;
    });
    const { events } = pair.connect();
    await pair.world.run();
    assert.deepEqual(typesOf(passive?.events ?? []), ['disconnected', 'timewait-exit']);
    assert.deepEqual(typesOf(events), ['established', 'disconnected', 'timewait-exit']);

    const early = pair.connect();
    early.connection.disconnect();
    await pair.world.run();
    assert.deepEqual(typesOf(early.events), ['disconnected']);
    assert.ok(pair.a.cm.isIdle && pair.b.cm.isIdle);
  });

  it('answers a DREQ for nobody with DREP, ids crossed', async () => {
    const pair = new CmPair();
    const body = { localCommId: 5, remoteCommId: 6, remoteQpn: 9, privateData: NONE };
    pair.inject(pair.b, { name: 'DREQ', body });
    await pair.world.run();
    const [drep] = pair.bodies('DREP');
    assert.deepEqual([drep?.localCommId, drep?.remoteCommId], [6, 5]);
    assert.equal(pair.b.cm.counters.unknownConnection, 1);
  });

  it('ignores a DREQ for another queue pair, and anything from a third party', async () => {
    const pair = new CmPair();
    const { active, passive } = await pair.established();
    const [rep] = pair.bodies('REP');
    assert.ok(rep);
    const ids = { localCommId: rep.remoteCommId, remoteCommId: rep.localCommId };
    const { qpn } = passive.qp;
    pair.inject(pair.b, { name: 'DREQ', body: { ...ids, remoteQpn: qpn + 1, privateData: NONE } });
    const stranger = gidFromIp('10.0.0.77');
    const dreq = { ...ids, remoteQpn: qpn, privateData: NONE };
    pair.inject(pair.b, { name: 'DREQ', body: dreq }, stranger);
    await pair.world.runFor(1_000);
    assert.equal(passive.connection.state, 'ESTABLISHED');
    assert.equal(pair.b.cm.counters.wrongSource, 1);
    assert.equal(active.connection.state, 'ESTABLISHED');
    pair.inject(pair.b, { name: 'DREQ', body: dreq });
    await pair.world.runFor(1_000);
    assert.equal(passive.connection.state, 'TIMEWAIT');
  });

  it('drops and counts APR, SIDR_REP, and RTU or REJ for nobody', async () => {
    const pair = new CmPair();
    const { b } = pair;
    const [from, to] = [gidFromIp('10.0.0.1'), gidFromIp('10.0.0.2')];
    const raw = (attribute: number): Uint8Array => {
      const mad = new Uint8Array(256);
      mad.set([1, 7, 2, 3]);
      new DataView(mad.buffer).setUint16(16, attribute);
      return mad;
    };
    const { APR, SIDR_REP, RTU, REJ } = CM_ATTRIBUTE;
    for (const id of [APR, SIDR_REP, RTU, REJ, 0x99]) b.device.receive(raw(id), from, to);
    await pair.world.run();
    assert.equal(b.cm.counters.unknownConnection, 4);
    assert.equal(b.cm.counters.malformed, 1);
    assert.deepEqual(pair.messages, []);
  });

  it('takes no harm from 20,000 random and mutated messages', async () => {
    const pair = new CmPair();
    const random = new SeededRandom(4);
    const { active, passive } = await pair.established();
    const samples = pair.network.carried.map(({ data }) => data);
    const [from, to] = [gidFromIp('10.0.0.3'), gidFromIp('10.0.0.2')];
    for (let i = 0; i < 20_000; i++) {
      const mad = samples[random.u32() % samples.length]?.slice() ?? new Uint8Array(256);
      const changes = 1 + (random.u32() % 6);
      for (let c = 0; c < changes; c++) mad[4 + (random.u32() % 252)] = random.u32() & 0xff;
      if (random.percent(20)) for (let at = 24; at < 256; at++) mad[at] = random.u32() & 0xff;
      pair.b.device.receive(mad, from, to);
      if (i % 256 === 0) await pair.world.runFor(1);
    }
    await pair.world.runFor(1_000);
    assert.equal(passive.connection.state, 'ESTABLISHED');
    assert.equal(active.connection.state, 'ESTABLISHED');
    assert.equal(pair.requests.length, 1);
    active.connection.disconnect();
    await pair.world.run();
    assert.ok(pair.b.cm.isIdle);
    assert.equal(pair.world.activeTimers, 0);
  });
});

describe('CM: a device and itself', () => {
  it('connects, and disconnects', async () => {
    const pair = new CmPair();
    const own = pair.b.device.gids[0];
    assert.ok(own);
    const events: CmEvent[] = [];
    let passive: { events: CmEvent[] } | undefined;
    pair.listen((request) => (passive = pair.accept(request)));
    const connection = pair.b.cm.connect({
      ...PARAMETERS,
      qp: pair.b.device.connectableQp(),
      remoteGid: own,
      serviceId: SERVICE,
      privateData: NONE,
      timeoutUs: 1_000_000,
      onEvent: (event) => events.push(event),
    });
    await pair.world.runFor(100_000);
    connection.disconnect();
    await pair.world.run();
    const whole = ['established', 'disconnected', 'timewait-exit'];
    assert.deepEqual(typesOf(events), whole);
    assert.deepEqual(typesOf(passive?.events ?? []), whole);
    assert.ok(pair.b.cm.isIdle);
  });
});

describe('CM: a peer that comes back with the same queue pair', () => {
  it('is rejected as stale, and the old connection ends with DREQ', async () => {
    const pair = new CmPair();
    const { active, passive } = await pair.established();
    const [good] = pair.bodies('REQ');
    assert.ok(good);
    pair.network.devices.splice(0, 1);
    const returned = new FakeNode(pair.network, '10.0.0.1', {
      seed: 99,
      attributes: { nodeGuid: good.localCaGuid },
    });
    pair.listen((request) => void pair.accept(request));
    const events: CmEvent[] = [];
    const qp = returned.device.connectableQp();
    Object.defineProperty(qp, 'qpn', { value: active.qp.qpn });
    const connect = (): unknown =>
      returned.cm.connect({
        ...PARAMETERS,
        qp,
        remoteGid: gidFromIp('10.0.0.2'),
        serviceId: good.serviceId,
        privateData: NONE,
        timeoutUs: Infinity,
        onEvent: (event) => events.push(event),
      });
    connect();
    await pair.world.runFor(50_000);
    assert.ok(events[0]?.type === 'rejected' && events[0].reason === 10);
    assert.deepEqual(typesOf(passive.events), ['established', 'disconnected']);
    assert.deepEqual(pair.messages.slice(3), ['REQ', 'DREQ', 'REJ', 'DREP']);
    assert.equal(pair.b.cm.counters.staleConnections, 1);

    // In timewait, the queue pair is not for that peer; after it, the second attempt is a new one.
    assert.throws(connect, /may still know it/);
    await pair.world.runFor(5_000_000);
    connect();
    await pair.world.runFor(50_000);
    assert.deepEqual(typesOf(events), ['rejected', 'timewait-exit', 'established']);
  });

  it('rejects a REP whose queue pair is in another connection', async () => {
    const pair = new CmPair();
    await pair.established();
    const [rep] = pair.bodies('REP');
    pair.network.fate = () => [];
    const { connection, events } = pair.connect();
    const remoteCommId = pair.bodies('REQ')[1]?.localCommId ?? 0;
    assert.ok(rep);
    pair.inject(pair.a, { name: 'REP', body: { ...rep, localCommId: 77, remoteCommId } });
    await pair.world.runFor(50_000);
    assert.ok(events[0]?.type === 'rejected' && events[0].reason === 10);
    assert.equal(connection.state, 'TIMEWAIT');
    const [rej] = pair.bodies('REJ');
    assert.deepEqual([rej?.messageRejected, rej?.reason], [1, 10]);
    await pair.world.runFor(10_000_000);
    assert.equal(connection.state, 'IDLE');
    assert.deepEqual(typesOf(events), ['rejected', 'timewait-exit']);
  });

  it('is not met with a queue pair that it may know, by accept either', async () => {
    const pair = new CmPair();
    const { active, passive } = await pair.established();
    active.connection.disconnect();
    await pair.world.runFor(1_000);
    assert.equal(passive.connection.state, 'TIMEWAIT');
    const qp = pair.b.device.connectableQp();
    Object.defineProperty(qp, 'qpn', { value: passive.qp.qpn });
    pair.listen(() => undefined);
    const { events } = pair.connect();
    await pair.world.runFor(1_000);
    const [, request] = pair.requests;
    assert.ok(request);
    assert.throws(() => pair.accept(request, { qp }), /may still know it/);
    await pair.world.runFor(4_000_000);
    pair.accept(request, { qp });
    await pair.world.runFor(1_000);
    assert.deepEqual(typesOf(events), ['established']);
  });

  it('does not take a late copy of a REQ for a new one: REJ 10 in timewait', async () => {
    const pair = new CmPair();
    pair.tamper('REQ', 1, [10, 150_000]);
    const { active } = await pair.established();
    pair.listen(() => assert.fail('a ghost'));
    active.connection.disconnect();
    await pair.world.run();
    assert.equal(pair.requests.length, 1);
    assert.equal(pair.bodies('REJ')[0]?.reason, 10);
    assert.deepEqual(typesOf(active.events), ['established', 'disconnected', 'timewait-exit']);
  });
});

describe('CM: flight record', () => {
  it('tells what has happened, with times, oldest first', async () => {
    const pair = new CmPair();
    const { active } = await pair.established();
    const record = active.connection.flightRecord();
    assert.match(record[0] ?? '', /^\+0\.000 ms connect: IDLE -> REQ_QUEUED$/);
    const events = record.map((line) => line.replace(/^\S+ ms /, ''));
    assert.deepEqual(events.slice(1), [
      'turn: REQ_QUEUED -> REQ_SENT',
      'REQ sent',
      'REP: REQ_SENT -> REP_RCVD',
      'qpReady: REP_RCVD -> ESTABLISHED',
      'RTU sent',
    ]);
  });

  it('tells the side that was asked of the request, and of what nobody expected', async () => {
    const pair = new CmPair();
    const { active, passive } = await pair.established();
    passive.connection.notifyEstablished();
    active.connection.disconnect();
    await pair.world.run();
    active.connection.disconnect();
    const record = passive.connection.flightRecord();
    assert.match(record[0] ?? '', /^\+0\.000 ms REQ: IDLE -> REQ_RCVD$/);
    const events = record.map((line) => line.replace(/^\S+ ms /, ''));
    assert.deepEqual(events.slice(1, 6), [
      'accept: REQ_RCVD -> REP_SENT',
      'REP sent',
      'RTU: REP_SENT -> ESTABLISHED',
      'qpReady: ESTABLISHED -> ESTABLISHED',
      'commEst: ESTABLISHED -> ESTABLISHED',
    ]);
    assert.ok(events.includes('DREP sent'), events.join());
  });
});
