// The CM module over librdmacm: connections, over a librdmacm without a kernel.

import assert from 'node:assert/strict';
import {
  AsyncEventType,
  type CmEvent,
  type CmRequest,
  gidFromIp,
  ipFromGid,
  QpState,
} from '../../../core/spi/index.js';
import { CmEventType } from '../../../providers/verbs/addon/rdmacm.js';
import {
  AccountQp,
  CmHost,
  CmSwitch,
  has,
  PORT,
  type Side,
  turns,
  typesOf,
  until,
} from '../../fake-verbs/cm-host.js';

const bytes = (...values: number[]): Uint8Array<ArrayBuffer> => Uint8Array.from(values);

describe('verbs: connections through librdmacm', () => {
  let host: CmHost;
  beforeEach(() => (host = new CmHost()));
  afterEach(async () => {
    await host.close();
    assert.equal(host.fake.live(), 0, 'identifiers, channels or events are left');
    assert.equal(host.activeTimers, 0, 'timers are left');
  });

  it('connects, tells both sides once, and moves both queue pairs to RTS', async () => {
    const { active, passive } = await host.pair();
    assert.deepEqual(typesOf(active), ['established']);
    assert.deepEqual(typesOf(passive), ['established']);
    for (const { qp, connection } of [active, passive]) {
      assert.equal(qp.state, QpState.RTS);
      assert.equal(connection.state, 'ESTABLISHED');
    }
  });

  it('gives the queue pairs what the CM has found, and what their owners ask for', async () => {
    const { active, passive } = await host.pair();
    const [activeRtr, passiveRtr] = [active.qp.to(QpState.RTR), passive.qp.to(QpState.RTR)];
    assert.equal(activeRtr?.destinationQpn, passive.qp.qpn);
    assert.equal(passiveRtr?.destinationQpn, active.qp.qpn);
    assert.equal(ipFromGid(activeRtr.addressVector?.gid ?? bytes()), '10.77.0.2');
    assert.equal(ipFromGid(passiveRtr.addressVector?.gid ?? bytes()), '10.77.0.2');
    assert.equal(passiveRtr.addressVector?.localGidIndex, 1);
    assert.equal(activeRtr.receivePsn, passive.qp.to(QpState.RTS)?.sendPsn);
    assert.equal(passiveRtr.receivePsn, active.qp.to(QpState.RTS)?.sendPsn);
    assert.equal(activeRtr.minRnrTimer, 12);
    assert.equal(activeRtr.pathMtuBytes, 4096);
    assert.equal(activeRtr.accessFlags, 0b1111);
    const rts = active.qp.to(QpState.RTS);
    assert.deepEqual([rts?.timeout, rts?.retryCount, rts?.rnrRetryCount], [18, 6, 5]);
  });

  it('hands private data over, padded to the length of its field', async () => {
    let request: CmRequest | undefined;
    host.listen((come) => (request = come));
    const active = host.connect({ privateData: bytes(1, 2, 3) });
    await until(() => request !== undefined);
    assert.deepEqual(request?.privateData, Uint8Array.from([1, 2, 3, ...new Uint8Array(53)]));
    const passive = host.accept(request, bytes(9, 8));
    await until(() => has(active) && has(passive));
    const [established] = active.events as [CmEvent & { type: 'established' }];
    assert.equal(established.privateData.length, 196);
    assert.deepEqual([...established.privateData.subarray(0, 3)], [9, 8, 0]);
    assert.equal((passive.events[0] as { privateData: Uint8Array }).privateData.length, 0);
  });

  it('tells the listener who asks, and with what', async () => {
    let request: CmRequest | undefined;
    host.listen((come) => (request = come));
    const active = host.connect({ responderResources: 7, initiatorDepth: 3, ackTimeout: 14 });
    const { qp } = active;
    await until(() => request !== undefined);
    assert.ok(request);
    assert.equal(ipFromGid(request.remoteGid), '10.77.0.2');
    assert.equal(ipFromGid(request.localGid), '10.77.0.2');
    assert.ok(request.remotePort > 1024);
    assert.equal(request.remoteQpn, qp.qpn);
    assert.equal(request.transport, 'rc');
    assert.deepEqual([request.responderResources, request.initiatorDepth], [3, 7]);
    assert.deepEqual([request.retryCount, request.rnrRetryCount], [6, 5]);
    assert.equal(request.pathMtuBytes, 4096);
    const passive = host.accept(request);
    assert.equal(passive.qp.to(QpState.RTR)?.maxDestRdAtomic, 3);
    await until(() => has(active) && has(passive));
    assert.equal(active.connection.localPort, request.remotePort);
    assert.equal(passive.connection.localPort, PORT);
    assert.equal(passive.qp.to(QpState.RTS)?.maxRdAtomic, 4);
    assert.equal(passive.qp.to(QpState.RTS)?.timeout, 14);
  });

  it('asks for no more than the device can do', async () => {
    await host.close();
    host = new CmHost({ maxResponderResources: 2, maxInitiatorDepth: 1 });
    let request: CmRequest | undefined;
    host.listen((come) => (request = come));
    host.connect({ responderResources: 255, initiatorDepth: 255 });
    await until(() => request !== undefined);
    assert.deepEqual([request?.responderResources, request?.initiatorDepth], [1, 2]);
  });

  it('asks for a smaller path MTU by a path of its own', async () => {
    const { active, passive } = await host.pair({ pathMtuBytes: 1024 });
    assert.equal(active.qp.to(QpState.RTR)?.pathMtuBytes, 1024);
    assert.equal(passive.qp.to(QpState.RTR)?.pathMtuBytes, 1024);
  });

  it('connects over IPv6, and between link-local addresses with their scope', async () => {
    for (const address of ['fd77::1', 'fe80::1']) {
      const { active, passive } = await host.pair({ remoteGid: gidFromIp(address) });
      assert.equal(ipFromGid(passive.connection.remoteGid), address);
      assert.equal(ipFromGid(active.connection.remoteGid), address);
    }
  });

  it('is ready to receive when accept returns, and ready to send when established', async () => {
    let passive: Side | undefined;
    host.listen((request) => {
      passive = host.accept(request);
      assert.equal(passive.qp.state, QpState.RTR);
    });
    host.connect();
    await until(() => passive !== undefined && has(passive));
    assert.equal(passive?.qp.state, QpState.RTS);
  });

  describe('established before RTU', () => {
    const accepted = async (): Promise<{ active: Side; passive: Side }> => {
      host.fake.set(CmSwitch.DROP_RTU, 1);
      let passive: Side | undefined;
      host.listen((request) => (passive = host.accept(request)));
      const active = host.connect();
      await until(() => passive !== undefined && has(active));
      await turns();
      assert.ok(passive);
      assert.deepEqual(typesOf(passive), []);
      return { active, passive };
    };

    it('by the consumer, who has seen data', async () => {
      const { passive } = await accepted();
      passive.connection.notifyEstablished();
      passive.connection.notifyEstablished();
      assert.deepEqual(typesOf(passive), [], 'not within the call');
      await turns();
      assert.deepEqual(typesOf(passive), ['established']);
      assert.equal(passive.qp.state, QpState.RTS);
      assert.equal(host.fake.calls('rdma_notify'), 1);
    });

    it("by the queue pair's event, which goes no further; others do", async () => {
      const { passive } = await accepted();
      passive.qp.eventHandler(AsyncEventType.COMM_EST);
      passive.qp.eventHandler(AsyncEventType.QP_LAST_WQE_REACHED);
      await turns();
      assert.deepEqual(typesOf(passive), ['established']);
      assert.deepEqual(passive.qp.events, [AsyncEventType.QP_LAST_WQE_REACHED]);
    });

    it('and by RTU that was under way: once', async () => {
      const { active, passive } = await host.pair();
      passive.connection.notifyEstablished();
      await turns();
      assert.deepEqual(typesOf(passive), ['established']);
      assert.deepEqual(typesOf(active), ['established']);
      assert.equal(host.fake.calls('rdma_notify'), 0, 'nobody waits for it');
    });
  });

  describe('disconnecting', () => {
    it('flushes first, and tells each side once; the number is free after timewait', async () => {
      const { active, passive } = await host.pair();
      active.connection.disconnect();
      assert.equal(active.qp.state, QpState.ERR);
      active.connection.disconnect();
      await until(() => has(active, 'timewait-exit') && has(passive, 'timewait-exit'));
      assert.deepEqual(active.events.slice(1), [
        { type: 'disconnected', byPeer: false },
        { type: 'timewait-exit' },
      ]);
      assert.deepEqual(passive.events.slice(1), [
        { type: 'disconnected', byPeer: true },
        { type: 'timewait-exit' },
      ]);
      assert.equal(passive.qp.state, QpState.ERR);
      assert.equal(host.cm.isIdle, true);
    });

    it('from both sides at a time ends both', async () => {
      const { active, passive } = await host.pair();
      active.connection.disconnect();
      passive.connection.disconnect();
      await until(() => has(active, 'timewait-exit') && has(passive, 'timewait-exit'));
      assert.ok(has(active, 'disconnected') && has(passive, 'disconnected'));
      assert.equal(host.cm.isIdle, true);
    });

    it('ends when the peer does not answer', async () => {
      const { active } = await host.pair();
      host.fake.set(CmSwitch.DROP_DREQ, 1);
      active.connection.disconnect();
      await until(() => has(active, 'timewait-exit'));
      assert.deepEqual(active.events[1], { type: 'disconnected', byPeer: false });
    });

    it('does not wait for a TIMEWAIT_EXIT that never comes', async () => {
      const { active, passive } = await host.pair();
      host.fake.set(CmSwitch.NO_TIMEWAIT, 1);
      active.connection.disconnect();
      await until(() => has(passive, 'disconnected') && has(active, 'disconnected'));
      assert.equal(active.connection.state, 'TIMEWAIT');
      host.advance(1_000_000);
      assert.equal(active.connection.state, 'TIMEWAIT');
      host.advance(6_000_000);
      await turns();
      assert.deepEqual(typesOf(active).slice(2), ['timewait-exit']);
      assert.equal(host.cm.isIdle, true);
    });

    it('abandon ends it without another event', async () => {
      const { active, passive } = await host.pair();
      active.connection.abandon();
      await until(() => has(passive, 'timewait-exit') && host.cm.isIdle);
      await turns();
      assert.deepEqual(typesOf(active), ['established']);
      assert.equal(active.qp.state, QpState.ERR);
    });
  });

  describe('what does not connect', () => {
    it('nobody listens: invalid service id', async () => {
      const { events, qp } = host.connect();
      await until(() => events.length > 0);
      const [rejected] = events as [CmEvent & { type: 'rejected' }];
      assert.deepEqual([rejected.type, rejected.reason, rejected.consumer], ['rejected', 8, false]);
      assert.equal(qp.state, QpState.INIT);
    });

    it("the peer's consumer refuses, with private data, whatever the reason", async () => {
      host.listen((request) => request.reject({ reason: 3, privateData: bytes(5, 6) }));
      const { events } = host.connect();
      await until(() => events.length > 0);
      const [rejected] = events as [CmEvent & { type: 'rejected' }];
      assert.deepEqual([rejected.reason, rejected.consumer], [28, true]);
      assert.equal(rejected.privateData.length, 148);
      assert.deepEqual([...rejected.privateData.subarray(0, 3)], [5, 6, 0]);
      assert.match(host.logged.join('\n'), /no resources available leaves as consumer reject/);
    });

    it('the address does not resolve: GID and address are named', async () => {
      host.fake.set(CmSwitch.ADDR_STATUS, -110);
      const { events } = host.connect({ remoteGid: gidFromIp('10.77.0.99') });
      await until(() => events.length > 0);
      const [{ type, detail }] = events as [{ type: string; detail: string }];
      assert.equal(type, 'unreachable');
      assert.match(
        detail,
        /10\.77\.0\.99 \(GID 0000:0000:0000:0000:0000:ffff:0a4d:0063\) from fake0/,
      );
      assert.match(detail, /rdma_resolve_addr, ETIMEDOUT/);
    });

    it('there is no route', async () => {
      host.fake.set(CmSwitch.ROUTE_STATUS, -110);
      const { events } = host.connect();
      await until(() => events.length > 0);
      assert.match((events[0] as { detail: string }).detail, /rdma_resolve_route, ETIMEDOUT/);
    });

    it('nobody answers', async () => {
      host.fake.set(CmSwitch.UNREACHABLE, 1);
      const { events } = host.connect();
      await until(() => events.length > 0);
      assert.match((events[0] as { detail: string }).detail, /no answer .*ETIMEDOUT/);
    });

    for (const [name, which] of [
      ['a request is lost', CmSwitch.DROP_REQ],
      ['an address resolves for ever', CmSwitch.ADDR_SILENT],
    ] as const) {
      it(`${name}: the consumer's time limit ends it`, async () => {
        host.fake.set(which, 1);
        const { events } = host.connect({ timeoutUs: 50_000 });
        await turns();
        host.advance(49_000);
        await turns();
        assert.deepEqual(events, []);
        host.advance(1_001);
        await turns();
        assert.deepEqual(events, [{ type: 'timed-out' }]);
        assert.equal(host.cm.isIdle, true);
      });
    }

    it('the route leads through another device', async () => {
      await host.close();
      host = new CmHost({}, 'other0');
      host.fake.addAddress('10.77.0.5', 'other0');
      const { events } = host.connect();
      await until(() => events.length > 0);
      assert.match((events[0] as { detail: string }).detail, /through fake0, not other0/);
    });

    it("the active side's queue pair fails: both sides hear of it", async () => {
      let passive: Side | undefined;
      host.listen((request) => (passive = host.accept(request)));
      const qp = new AccountQp(0x900);
      qp.failAt = QpState.RTR;
      const active = host.connect({}, qp);
      await until(() => active.events.length > 0 && (passive?.events.length ?? 0) > 0);
      assert.match((active.events[0] as { detail: string }).detail, /this queue pair is ill/);
      assert.deepEqual(typesOf(passive!), ['accept-failed']);
      assert.equal(passive?.qp.state, QpState.ERR);
    });

    it("the passive side's queue pair cannot send: the handshake has failed", async () => {
      let passive: Side | undefined;
      host.listen((request) => {
        const qp = new AccountQp(0x901);
        qp.failAt = QpState.RTS;
        passive = host.accept(request, bytes(), qp);
      });
      const active = host.connect();
      await until(() => has(active, 'timewait-exit'));
      assert.deepEqual(typesOf(passive!).slice(0, 1), ['accept-failed']);
      assert.deepEqual(active.events[1], { type: 'disconnected', byPeer: true });
    });

    it('the reply is lost', async () => {
      host.fake.set(CmSwitch.DROP_REP, 1);
      let passive: Side | undefined;
      host.listen((request) => (passive = host.accept(request)));
      host.connect();
      await until(() => (passive?.events.length ?? 0) > 0);
      assert.equal(passive?.events[0]?.type, 'accept-failed');
      assert.equal(passive.qp.state, QpState.ERR);
    });

    it('disconnect and abandon give up what is under way', async () => {
      host.fake.set(CmSwitch.DROP_REQ, 1);
      const [one, two] = [host.connect(), host.connect()];
      await turns();
      assert.equal(one.connection.state, 'REQ_SENT');
      one.connection.disconnect();
      two.connection.abandon();
      await turns();
      assert.deepEqual(one.events, [{ type: 'disconnected', byPeer: false }]);
      assert.deepEqual(two.events, []);
      assert.equal(host.cm.isIdle, true);
    });
  });

  it('ends at once when the kernel reports UNREACHABLE, with DREQ and the reason', async () => {
    const { active, passive } = await host.pair();
    host.fake.raise(CmEventType.UNREACHABLE, -110);
    await turns();
    assert.ok(host.fake.calls('rdma_disconnect') >= 2, 'DREQ of either side');
    const failure = 'no answer (rdma_cm: UNREACHABLE, ETIMEDOUT)';
    for (const side of [active, passive]) {
      assert.deepEqual(
        side.events.filter(({ type }) => type === 'disconnected'),
        [{ type: 'disconnected', byPeer: false, failure }],
      );
      assert.equal(side.qp.state, QpState.ERR);
    }
  });

  it('keeps a flight record that names states, events and what was told', async () => {
    const { active } = await host.pair();
    const record = active.connection.flightRecord().join('\n');
    for (const text of [
      `asks 10.77.0.2:${PORT} from 10.77.0.2:0`,
      'RDMA_CM_EVENT_ADDR_RESOLVED',
      'ROUTE_QUERY -> REQ_SENT (ROUTE_RESOLVED)',
      'REP_RCVD -> ESTABLISHED (qpReady)',
      'told: established',
    ]) {
      assert.ok(record.includes(text), `${text} in\n${record}`);
    }
  });
});
