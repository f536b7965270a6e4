import assert from 'node:assert/strict';
import { CompletionFlags, DatError, EvdFlags } from '../../../core/index.js';
import { AsyncEventType, QpState, WcStatus } from '../../../core/spi/index.js';
import { connected, drain, texts, unconnected } from '../../support/fake-endpoints.js';

const NOTHING = new Uint8Array(0);

describe('breaking', () => {
  it('shows the failed completion, the flushed ones, then one BROKEN', async () => {
    const { ep, cm, world, evd, device, lmr, ia } = await connected();
    ep.postRecv(lmr.segment(), 1);
    for (const cookie of [2, 3, 4]) ep.postSend(lmr.segment(), cookie);
    device.qp.completeSend(WcStatus.RETRY_EXC_ERR);
    assert.equal(ep.state, 'DISCONNECTED');
    const events = drain(evd);
    assert.deepEqual(texts(events), [
      'dto 2 TRANSPORT',
      'dto 3 FLUSHED',
      'dto 4 FLUSHED',
      'dto 1 FLUSHED',
      'BROKEN',
    ]);
    assert.equal(ep.state, 'DISCONNECTED');
    assert.equal(cm.connection.disconnects, 1);
    const broken = events.at(-1);
    assert.ok(broken?.type === 'connection');
    const record = broken.flightRecord?.join('\n') ?? '';
    assert.match(record, /ep: .*CONNECTED -> DISCONNECTED[^]*qp: RTS -> ERR[^]*cm: REQ sent/);
    cm.connection.emit({ type: 'disconnected', byPeer: false });
    device.qp.eventHandler(AsyncEventType.QP_FATAL);
    world.pump();
    assert.deepEqual(texts(drain(evd)), []);
    assert.deepEqual(texts(drain(ia.asyncEvd)), []);
  });

  it('leaves nothing of a burst behind that resets or frees the endpoint', async () => {
    const { ep, cm, world, evd, device, lmr } = await connected();
    const first = device.qp;
    cm.connection.emit({ type: 'disconnected', byPeer: true });
    world.pump();
    drain(evd);
    ep.burst(() => {
      ep.postRecv(lmr.segment(), 1);
      ep.reset();
      ep.postRecv(lmr.segment(), 2);
    });
    assert.equal(first.receiveDoorbells, 0, 'the old queue pair is gone');
    assert.deepEqual(texts(drain(evd)), []);
    assert.equal(ep.receivesFree, ep.attributes.maxRecvDtos - 1);
    const second = device.qp;
    const before = second.receiveDoorbells;
    ep.burst(() => {
      ep.postRecv(lmr.segment(), 3);
      ep.free();
    });
    assert.equal(second.receiveDoorbells, before);
  });

  it('does not wait for the consumer to dequeue', async () => {
    const connect = (): object => ({});
    const bench = await connected(connect);
    const { ia, pz, cm, world, device, lmr } = bench;
    const connectEvd = ia.createEvd({ qlen: 4, streams: EvdFlags.CONNECTION });
    const dtoEvd = ia.createEvd({ qlen: 64, streams: EvdFlags.DTO });
    const ep = ia.createEndpoint({ pz, connectEvd, recvEvd: dtoEvd, requestEvd: dtoEvd });
    ep.connect({ address: '192.0.2.2', connQual: 7 });
    cm.connection.emit({ type: 'established', privateData: NOTHING });
    world.pump();
    drain(connectEvd);
    const waiting = connectEvd.wait();
    ep.postRecv(lmr.segment(), 1);
    ep.postSend(lmr.segment(), 2, CompletionFlags.SUPPRESS);
    device.qp.completeSend(WcStatus.RETRY_EXC_ERR);
    world.pump();
    const { event } = await waiting;
    assert.deepEqual(texts([event]), ['BROKEN']);
    assert.deepEqual(texts(drain(dtoEvd)), ['dto 2 TRANSPORT', 'dto 1 FLUSHED']);
  });

  it('breaks by an event of the queue pair: EP_BROKEN and one BROKEN', async () => {
    for (const type of [
      AsyncEventType.QP_FATAL,
      AsyncEventType.QP_REQ_ERR,
      AsyncEventType.QP_ACCESS_ERR,
    ]) {
      const { ep, cm, world, evd, device, lmr, ia } = await connected();
      ep.postRecv(lmr.segment(), 1);
      device.qp.modify({ state: QpState.ERR });
      device.qp.eventHandler(type);
      world.pump();
      assert.equal(ep.state, 'DISCONNECTED');
      assert.equal(cm.connection.disconnects, 1);
      assert.deepEqual(texts(drain(evd)), ['dto 1 FLUSHED', 'BROKEN']);
      assert.deepEqual(texts(drain(ia.asyncEvd)), ['ASYNC_EP_BROKEN']);
      cm.connection.emit({ type: 'disconnected', byPeer: false });
      world.pump();
      assert.deepEqual(texts(drain(evd)), []);
    }
  });

  it('knows the end also when the last requests leave no completion', async () => {
    const { ep, evd, device, lmr } = await connected();
    ep.postSend(lmr.segment(), 1);
    ep.postSend(lmr.segment(), 2, CompletionFlags.SUPPRESS);
    ep.postSend(lmr.segment(), 3, CompletionFlags.SUPPRESS);
    device.qp.completeSend();
    device.qp.completeSend();
    device.qp.completeSend();
    // The two suppressed ones are done, and nobody has been told.
    ep.postRecv(lmr.segment(), 4);
    device.qp.completeReceive(0, WcStatus.LOC_LEN_ERR);
    assert.deepEqual(texts(drain(evd)), ['dto 1 SUCCESS', 'dto 4 LOCAL_LENGTH', 'BROKEN']);
    assert.equal(lmr.inFlight, 0);
  });

  it('flushes what is posted afterwards, which delays nothing', async () => {
    const { ep, evd, device, lmr } = await connected();
    ep.postSend(lmr.segment(), 1);
    device.qp.completeSend(WcStatus.RETRY_EXC_ERR);
    assert.deepEqual(texts(drain(evd)), ['dto 1 TRANSPORT', 'BROKEN']);
    ep.postSend(lmr.segment(), 2);
    ep.postRecv(lmr.segment(), 3);
    assert.deepEqual(texts(drain(evd)), ['dto 2 FLUSHED', 'dto 3 FLUSHED']);
  });

  it('breaks every endpoint of a completion queue that has overrun', async () => {
    const { ep, evd, world, device, lmr, ia } = await connected();
    ep.postRecv(lmr.segment(), 1);
    device.completionQueues[0]?.overrun();
    world.pump();
    assert.equal(ep.state, 'DISCONNECTED');
    assert.ok(texts(drain(evd)).includes('BROKEN'));
    assert.deepEqual(texts(drain(ia.asyncEvd)).sort(), ['ASYNC_EP_BROKEN', 'ASYNC_EVD_OVERFLOW']);
  });
});

describe('disconnecting', () => {
  it('abruptly: DREQ, flushed completions, DISCONNECTED', async () => {
    const { ep, cm, world, evd, lmr } = await connected();
    ep.postSend(lmr.segment(), 1);
    ep.postRecv(lmr.segment(), 2);
    ep.disconnect();
    assert.equal(cm.connection.disconnects, 1);
    assert.deepEqual(texts(drain(evd)), ['dto 1 FLUSHED', 'dto 2 FLUSHED', 'DISCONNECTED']);
    assert.equal(ep.state, 'DISCONNECTED');
    ep.disconnect();
    ep.disconnect('graceful');
    cm.connection.emit({ type: 'disconnected', byPeer: false });
    world.pump();
    assert.deepEqual(texts(drain(evd)), []);
  });

  it("gracefully: requests finish first, then DREQ; the end is the CM's", async () => {
    const { ep, cm, world, evd, device, lmr } = await connected();
    ep.postRecv(lmr.segment(), 1);
    ep.postSend(lmr.segment(), 2);
    ep.postSend(lmr.segment(), 3, CompletionFlags.SUPPRESS);
    ep.disconnect('graceful');
    assert.equal(ep.state, 'DISCONNECT_PENDING');
    assert.throws(() => ep.postSend(lmr.segment()), /DAT_INVALID_STATE_EP_DISCPENDING/);
    ep.disconnect('graceful');
    assert.equal(cm.connection.disconnects, 0);
    for (let i = 0; i < 3; i++) device.qp.completeSend();
    // Nobody dequeues: the endpoint looks by itself.
    world.pump();
    assert.equal(cm.connection.disconnects, 1);
    assert.equal(ep.state, 'DISCONNECT_PENDING');
    cm.connection.emit({ type: 'disconnected', byPeer: false });
    world.pump();
    assert.equal(ep.state, 'DISCONNECTED');
    assert.deepEqual(texts(drain(evd)), ['dto 2 SUCCESS', 'dto 1 FLUSHED', 'DISCONNECTED']);
  });

  it('abruptly after gracefully does not wait any longer', async () => {
    const { ep, cm, evd, lmr } = await connected();
    ep.postSend(lmr.segment(), 2);
    ep.disconnect('graceful');
    ep.disconnect('abrupt');
    assert.equal(cm.connection.disconnects, 1);
    assert.deepEqual(texts(drain(evd)), ['dto 2 FLUSHED', 'DISCONNECTED']);
  });

  it('is DISCONNECTED, not BROKEN, when a request fails while it is ordered', async () => {
    const { ep, evd, world, device, lmr } = await connected();
    ep.postSend(lmr.segment(), 2);
    ep.disconnect('graceful');
    device.qp.completeSend(WcStatus.RETRY_EXC_ERR);
    world.pump();
    assert.deepEqual(texts(drain(evd)), ['dto 2 TRANSPORT', 'DISCONNECTED']);
  });

  it('while connecting: nothing of the attempt is left', async () => {
    const { ep, cm, world, evd, lmr } = await unconnected();
    ep.connect({ address: '192.0.2.2', connQual: 7 });
    ep.postRecv(lmr.segment(), 1);
    ep.disconnect('graceful');
    assert.equal(cm.connection.abandons, 1);
    assert.deepEqual(texts(drain(evd)), ['dto 1 FLUSHED', 'DISCONNECTED']);
    assert.equal(world.retained, 0);
  });

  it('by the peer: completions, then DISCONNECTED, and an answer', async () => {
    const { ep, cm, world, evd, device, lmr } = await connected();
    ep.postRecv(lmr.segment(), 1);
    ep.postRecv(lmr.segment(), 2);
    device.qp.completeReceive(3);
    cm.connection.emit({ type: 'disconnected', byPeer: true });
    world.pump();
    assert.equal(ep.state, 'DISCONNECTED');
    assert.deepEqual(texts(drain(evd)), ['dto 1 SUCCESS', 'dto 2 FLUSHED', 'DISCONNECTED']);
  });

  it('by freeing: DREQ, no event', async () => {
    const { ep, cm, world, evd, device, lmr } = await connected();
    ep.postRecv(lmr.segment(), 1);
    ep.free();
    world.pump();
    assert.equal(cm.connection.disconnects, 1);
    assert.equal(device.qp.destroyed, true);
    assert.equal(lmr.inFlight, 0);
    assert.deepEqual(texts(drain(evd)), []);
    assert.throws(() => ep.getStatus(), DatError.isDatError);
    await evd.free();
  });
});
