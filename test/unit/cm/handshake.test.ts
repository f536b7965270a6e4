/** Connecting and disconnecting when nothing goes wrong. */
import assert from 'node:assert/strict';
import {
  AsyncEventType,
  PortSpace,
  QpState,
  ipFromGid,
  serviceIdOf,
} from '../../../core/spi/index.js';
import { CmPair, SERVICE, messageName, text, textOf, typesOf } from '../../support/cm-pair.js';

describe('CM: a connection', () => {
  it('is REQ, REP, RTU, then DREQ, DREP, and ends with nothing held', async () => {
    const pair = new CmPair();
    const { active, passive } = await pair.established();
    assert.deepEqual(pair.messages, ['REQ', 'REP', 'RTU']);
    assert.deepEqual(typesOf(active.events), ['established']);
    assert.deepEqual(typesOf(passive.events), ['established']);

    active.connection.disconnect();
    await pair.world.run();
    assert.deepEqual(pair.messages, ['REQ', 'REP', 'RTU', 'DREQ', 'DREP']);
    assert.deepEqual(active.events.slice(1), [
      { type: 'disconnected', byPeer: false },
      { type: 'timewait-exit' },
    ]);
    assert.deepEqual(passive.events.slice(1), [
      { type: 'disconnected', byPeer: true },
      { type: 'timewait-exit' },
    ]);
    assert.equal(active.qp.state, QpState.ERR);
    assert.equal(passive.qp.state, QpState.ERR);
    assert.ok(pair.a.cm.isIdle && pair.b.cm.isIdle);
    assert.equal(pair.world.activeTimers, 0);
    assert.equal(pair.a.cm.counters.unexpected + pair.b.cm.counters.unexpected, 0);
  });

  it('carries private data both ways, and says who asks', async () => {
    const pair = new CmPair();
    const { active, passive } = await pair.established();
    const [request] = pair.requests;
    assert.ok(request);
    assert.equal(textOf(request.privateData), 'hello');
    assert.equal(request.privateData.length, 56);
    assert.equal(request.serviceId, SERVICE);
    assert.equal(ipFromGid(request.remoteGid), '10.0.0.1');
    assert.equal(ipFromGid(request.localGid), '10.0.0.2');
    assert.ok(request.remotePort >= 32_768);
    assert.equal(active.connection.localPort, request.remotePort);
    assert.equal(serviceIdOf(PortSpace.TCP, passive.connection.localPort), SERVICE);
    assert.equal(request.remoteQpn, active.qp.qpn);
    const [event] = active.events;
    assert.ok(event?.type === 'established');
    assert.equal(textOf(event.privateData), 'welcome');
    assert.equal(event.privateData.length, 196);
  });

  it('crosses PSNs, resources and queue pair numbers', async () => {
    const pair = new CmPair();
    const { active, passive } = await pair.established();
    const mine = active.qp.query();
    const theirs = passive.qp.query();
    assert.equal(mine.destinationQpn, passive.qp.qpn);
    assert.equal(theirs.destinationQpn, active.qp.qpn);
    assert.equal(mine.sendPsn, theirs.receivePsn);
    assert.equal(theirs.sendPsn, mine.receivePsn);
    // Each side serves what the other issues: min(4, 3) both ways.
    assert.equal(mine.maxDestRdAtomic, theirs.maxRdAtomic);
    assert.equal(theirs.maxDestRdAtomic, mine.maxRdAtomic);
    assert.deepEqual([mine.maxDestRdAtomic, mine.maxRdAtomic], [3, 3]);
    assert.deepEqual([mine.pathMtuBytes, theirs.pathMtuBytes], [1024, 1024]);
    assert.deepEqual([mine.retryCount, theirs.retryCount], [6, 6]);
    assert.deepEqual([mine.minRnrTimer, theirs.minRnrTimer], [12, 12]);
    assert.deepEqual([mine.timeout, theirs.timeout], [18, 18]);
    assert.deepEqual([mine.accessFlags, theirs.accessFlags], [7, 7]);
  });

  it('moves the passive queue pair to RTR before REP leaves, and to RTS by RTU', async () => {
    const pair = new CmPair();
    const states: string[] = [];
    const qp = pair.b.device.connectableQp();
    pair.network.fate = (parcel) => {
      states.push(`${messageName(parcel)} ${qp.state}`);
      return [10];
    };
    pair.listen((request) => void pair.accept(request, { qp }));
    pair.connect();
    await pair.world.runFor(100_000);
    const { INIT, RTR, RTS } = QpState;
    assert.deepEqual(states, [`REQ ${INIT}`, `REP ${RTR}`, `RTU ${RTR}`]);
    assert.equal(qp.state, RTS);
  });

  it('says established once: by COMM_EST, the consumer or RTU, whichever is first', async () => {
    for (const early of ['COMM_EST', 'notify', 'both'] as const) {
      const pair = new CmPair();
      pair.tamper('RTU', 1, [200_000]);
      const { passive } = await pair.established();
      assert.deepEqual(passive.events, []);
      if (early !== 'notify') passive.qp.raise(AsyncEventType.COMM_EST);
      if (early !== 'COMM_EST') passive.connection.notifyEstablished();
      await pair.world.runFor(10_000);
      assert.deepEqual(typesOf(passive.events), ['established'], early);
      assert.equal(passive.qp.state, QpState.RTS);
      await pair.world.runFor(1_000_000);
      assert.deepEqual(typesOf(passive.events), ['established'], early);
      assert.deepEqual(pair.messages, ['REQ', 'REP', 'RTU']);
    }
  });

  it('keeps COMM_EST to itself and passes other events on, in order, until the end', async () => {
    const pair = new CmPair();
    const { active, passive } = await pair.established();
    const events = [AsyncEventType.QP_ACCESS_ERR, AsyncEventType.COMM_EST, AsyncEventType.QP_FATAL];
    for (const event of events) passive.qp.raise(event);
    await pair.world.runFor(1000);
    assert.deepEqual(passive.qp.forwarded, [AsyncEventType.QP_ACCESS_ERR, AsyncEventType.QP_FATAL]);
    active.connection.disconnect();
    await pair.world.run();
    passive.qp.raise(AsyncEventType.COMM_EST);
    await pair.world.run();
    assert.equal(passive.qp.forwarded.length, 3);
  });

  it('connects over IPv6', async () => {
    const pair = new CmPair({ ips: ['fd00::1', 'fd00::2'] });
    const { active } = await pair.established();
    const [request] = pair.requests;
    assert.deepEqual(typesOf(active.events), ['established']);
    assert.equal(ipFromGid(request?.remoteGid ?? new Uint8Array(16)), 'fd00::1');
  });

  it('gives all 92 bytes of private data to a service id that is not rdma_cm’s', async () => {
    const pair = new CmPair();
    const serviceId = 0x1000_0000_0000_0001n;
    let received = new Uint8Array(0);
    pair.b.cm.listen({
      serviceId,
      backlog: 1,
      onRequest: (request) => (received = request.privateData.slice()),
    });
    pair.connect({ serviceId, privateData: text('x'.repeat(92)) });
    await pair.world.runFor(100_000);
    assert.equal(textOf(received), 'x'.repeat(92));
  });
});
