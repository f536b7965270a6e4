import assert from 'node:assert/strict';
import { EvdFlags } from '../../../core/index.js';
import { type CmEvent, QpState, SpiError } from '../../../core/spi/index.js';
import { accepting, connected, drain, texts, unconnected } from '../../support/fake-endpoints.js';

const NOTHING = new Uint8Array(0);

describe('connecting', () => {
  it('gives the CM what was asked for, and reports ESTABLISHED with private data', async () => {
    const { ep, cm, world, evd, device } = await unconnected();
    const privateData = Uint8Array.of(1, 2, 3);
    ep.connect({ address: '192.0.2.2', connQual: 7, timeoutMs: 250, privateData });
    assert.equal(ep.state, 'ACTIVE_CONNECTION_PENDING');
    assert.equal(world.retained, 1);
    const [options] = cm.connects;
    assert.equal(options?.serviceId, 0x01060007n);
    assert.equal(options?.timeoutUs, 250_000);
    assert.deepEqual(options?.privateData, privateData);
    assert.equal(options?.qp, device.qp);
    assert.equal(options?.retryCount, 7);
    assert.equal(options?.responderResources, 16);
    cm.connection.emit({ type: 'established', privateData: Uint8Array.of(9) });
    assert.equal(evd.dequeue(), undefined);
    world.pump();
    assert.equal(ep.state, 'CONNECTED');
    assert.equal(world.retained, 0);
    const event = evd.dequeue();
    assert.deepEqual(event?.type === 'connection' && event.privateData, Uint8Array.of(9));
    assert.equal(ep.query().remoteAddress, '192.0.2.2');
  });

  const outcomes: readonly [CmEvent, string, string][] = [
    [reject(28, true), 'PEER_REJECTED', 'ACCEPT_COMPLETION_ERROR'],
    [reject(8, false), 'NON_PEER_REJECTED', 'ACCEPT_COMPLETION_ERROR'],
    [{ type: 'unreachable', detail: 'no route' }, 'UNREACHABLE', 'ACCEPT_COMPLETION_ERROR'],
    [{ type: 'timed-out' }, 'TIMED_OUT', 'ACCEPT_COMPLETION_ERROR'],
    [{ type: 'accept-failed', detail: 'no RTU' }, 'NON_PEER_REJECTED', 'ACCEPT_COMPLETION_ERROR'],
    [{ type: 'disconnected', byPeer: true }, 'DISCONNECTED', 'DISCONNECTED'],
  ];
  it('is told that it is lost, with the reason, if neither side ended it', async () => {
    const { ep, cm, world, evd, device, lmr } = await connected();
    ep.postRecv(lmr.segment(), 5);
    const failure = 'no answer (rdma_cm: UNREACHABLE, ETIMEDOUT)';
    cm.connection.emit({ type: 'disconnected', byPeer: false, failure });
    world.pump();
    assert.equal(device.qp.state, QpState.ERR);
    const events = drain(evd);
    assert.deepEqual(texts(events), ['dto 5 FLUSHED', 'BROKEN']);
    const broken = events.at(-1);
    assert.ok(broken?.type === 'connection');
    assert.equal(broken.cause, 'CONNECTION_LOST');
    assert.match(broken.reason ?? '', /cannot go on: no answer .*ETIMEDOUT/);
  });

  for (const [outcome, active, passive] of outcomes) {
    it(`turns ${outcome.type} into ${active}, accepting into ${passive}`, async () => {
      for (const [start, name] of [
        [unconnected, active],
        [accepting, passive],
      ] as const) {
        const { ep, cm, world, evd, device, lmr } = await start();
        if (start === unconnected) ep.connect({ address: '192.0.2.2', connQual: 7 });
        ep.postRecv(lmr.segment(), 5);
        cm.connection.emit(outcome);
        world.pump();
        assert.equal(ep.state, 'DISCONNECTED');
        assert.equal(device.qp.state, QpState.ERR);
        assert.equal(world.retained, 0);
        assert.deepEqual(texts(drain(evd)), ['dto 5 FLUSHED', name]);
        // What comes late changes nothing.
        cm.connection.emit({ type: 'timewait-exit' });
        cm.connection.emit({ type: 'disconnected', byPeer: false });
        world.pump();
        assert.deepEqual(texts(drain(evd)), []);
      }
    });
  }

  it('carries the reject reason and private data', async () => {
    const { ep, cm, world, evd } = await unconnected();
    ep.connect({ address: '192.0.2.2', connQual: 7 });
    cm.connection.emit(reject(28, true));
    world.pump();
    const event = evd.dequeue();
    assert.ok(event?.type === 'connection');
    assert.equal(event.rejectReason, 28);
    assert.deepEqual(event.privateData, Uint8Array.of(4));
    assert.match(event.reason ?? '', /rejected the request/);
  });

  it('stays UNCONNECTED when the CM refuses the call', async () => {
    const { ep, cm, world } = await unconnected();
    cm.failNext = new SpiError('ENETUNREACH', 'no local address of that family');
    assert.throws(
      () => ep.connect({ address: '2001:db8::1', connQual: 7 }),
      /no local address.*DAT_INVALID_ADDRESS_UNREACHABLE/,
    );
    assert.equal(ep.state, 'UNCONNECTED');
    assert.equal(world.retained, 0);
    ep.connect({ address: '192.0.2.2', connQual: 7 });
  });

  it('resets to a fresh queue pair, deaf to the old connection', async () => {
    const { ep, cm, world, evd, device, lmr } = await connected();
    const first = ep.qpn;
    ep.postRecv(lmr.segment(), 1);
    const old = cm.connection;
    old.emit({ type: 'disconnected', byPeer: true });
    world.pump();
    assert.deepEqual(texts(drain(evd)), ['dto 1 FLUSHED', 'DISCONNECTED']);
    ep.reset();
    assert.equal(ep.state, 'UNCONNECTED');
    assert.notEqual(ep.qpn, first);
    assert.equal(device.queuePairs[0]?.destroyed, true);
    ep.connect({ address: '192.0.2.2', connQual: 7 });
    old.emit({ type: 'disconnected', byPeer: true });
    world.pump();
    assert.equal(ep.state, 'ACTIVE_CONNECTION_PENDING');
    cm.connection.emit({ type: 'established', privateData: NOTHING });
    world.pump();
    assert.deepEqual(texts(drain(evd)), ['ESTABLISHED']);
  });
});

describe('accepting', () => {
  it('answers with the smaller of both sides; ESTABLISHED has no private data', async () => {
    const { ep, cm, world, evd } = await accepting();
    assert.equal(ep.state, 'COMPLETION_PENDING');
    assert.equal(cm.requests[0]?.accepted?.responderResources, 4);
    assert.equal(cm.requests[0]?.accepted?.initiatorDepth, 2);
    cm.connection.emit({ type: 'established', privateData: Uint8Array.of(1) });
    world.pump();
    const event = evd.dequeue();
    assert.ok(event?.type === 'connection');
    assert.deepEqual(texts([event]), ['ESTABLISHED']);
    assert.equal(event.privateData.length, 0);
  });

  it('withholds the doorbell until established', async () => {
    const { ep, cm, world, device, lmr } = await accepting();
    ep.postSend(lmr.segment(), 1);
    ep.burst(() => ep.postSend(lmr.segment(), 2));
    assert.equal(device.qp.sendDoorbells, 0);
    cm.connection.emit({ type: 'established', privateData: NOTHING });
    world.pump();
    assert.equal(device.qp.sendDoorbells, 1);
    assert.deepEqual(
      device.qp.work.map((work) => work.cookie),
      [1, 2],
    );
  });

  it('flushes what waited when it comes to nothing', async () => {
    const { ep, cm, world, evd, lmr } = await accepting();
    ep.postSend(lmr.segment(), 1);
    cm.connection.emit({ type: 'accept-failed', detail: 'no RTU' });
    world.pump();
    assert.deepEqual(texts(drain(evd)), ['dto 1 FLUSHED', 'ACCEPT_COMPLETION_ERROR']);
  });

  it('is established by the first receive, before that receive, once', async () => {
    const { ep, cm, world, evd, device, lmr } = await accepting();
    ep.postRecv(lmr.segment(), 8);
    ep.postSend(lmr.segment(), 9);
    device.qp.completeReceive(4);
    assert.equal(ep.state, 'COMPLETION_PENDING');
    const first = evd.dequeue();
    assert.deepEqual(texts(first ? [first] : []), ['ESTABLISHED']);
    assert.equal(ep.state, 'CONNECTED');
    assert.equal(cm.connection.establishedNotices, 1);
    assert.deepEqual(texts(drain(evd)), ['dto 8 SUCCESS']);
    assert.equal(device.qp.sendDoorbells, 1);
    world.pump();
    assert.deepEqual(texts(drain(evd)), []);
    assert.deepEqual(
      device.qp.work.map((work) => work.cookie),
      [9],
    );
  });

  it('is established on its connect EVD before the receive can be dequeued elsewhere', async () => {
    const bench = await accepting();
    const { ia, pz, cm, world, device, lmr } = bench;
    const connectEvd = ia.createEvd({ qlen: 4, streams: EvdFlags.CONNECTION });
    const recvEvd = ia.createEvd({ qlen: 16, streams: EvdFlags.DTO });
    const ep = ia.createEndpoint({ pz, connectEvd, recvEvd });
    ia.createPsp({ connQual: 8, evd: bench.evd });
    cm.request(8);
    world.pump();
    const [request] = drain(bench.evd);
    assert.ok(request?.type === 'connection-request');
    request.cr.accept(ep);
    ep.postRecv(lmr.segment(), 3);
    device.qp.completeReceive(4);
    assert.equal(recvEvd.query().pending, 1);
    assert.deepEqual(texts(drain(connectEvd)), ['ESTABLISHED']);
    assert.deepEqual(texts(drain(recvEvd)), ['dto 3 SUCCESS']);
  });

  it('gives up with an event when the request is gone', async () => {
    const { ia, ep, cm, world, evd } = await unconnected();
    ia.createPsp({ connQual: 7, evd });
    cm.request(7);
    world.pump();
    const [event] = drain(evd);
    assert.ok(event?.type === 'connection-request');
    cm.failNext = new SpiError('ENOTCONN', 'the request is gone');
    event.cr.accept(ep);
    assert.deepEqual(texts(drain(evd)), ['ACCEPT_COMPLETION_ERROR']);
    assert.equal(ep.state, 'DISCONNECTED');
    assert.throws(() => event.cr.accept(ep), /DAT_INVALID_HANDLE_CR/);
  });

  it('rejects with private data, once', async () => {
    const { ia, ep, cm, world, evd } = await unconnected();
    const psp = ia.createPsp({ connQual: 7, evd });
    cm.request(7, Uint8Array.of(6));
    world.pump();
    const [event] = drain(evd);
    assert.ok(event?.type === 'connection-request');
    assert.equal(event.sp, psp);
    assert.equal(event.connQual, 7);
    assert.deepEqual(event.cr.query().privateData, Uint8Array.of(6));
    assert.equal(event.cr.query().remoteAddress, '192.0.2.2');
    event.cr.reject({ privateData: Uint8Array.of(5) });
    assert.deepEqual(cm.requests[0]?.rejected, { reason: 28, privateData: Uint8Array.of(5) });
    assert.throws(() => event.cr.reject(), /DAT_INVALID_HANDLE_CR/);
    assert.throws(() => event.cr.accept(ep), /DAT_INVALID_HANDLE_CR/);
  });

  it('refuses a request for which its EVD has no room', async () => {
    const { ia, cm, world } = await unconnected();
    const evd = ia.createEvd({ qlen: 1, streams: EvdFlags.CR });
    ia.createPsp({ connQual: 7, evd });
    cm.request(7);
    cm.request(7);
    world.pump();
    assert.equal(drain(evd).length, 1);
    assert.equal(cm.requests[0]?.rejected, undefined);
    assert.equal(cm.requests[1]?.rejected?.reason, 3);
    assert.deepEqual(texts(drain(ia.asyncEvd)), ['ASYNC_EVD_OVERFLOW']);
  });
});

function reject(reason: number, consumer: boolean): CmEvent {
  return { type: 'rejected', reason, consumer, privateData: Uint8Array.of(4) };
}
