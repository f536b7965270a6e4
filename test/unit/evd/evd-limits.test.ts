import assert from 'node:assert/strict';

import { DatEventNumber, Evd, EvdFlags } from '../../../core/evd/index.js';
import { AsyncEventType, WcStatus } from '../../../core/spi/index.js';
import { label } from './fake-host.js';

import { connection, dat, drain, setUp, watchErrors } from './set-up.js';

describe('evd: limits and the end', () => {
  it('names itself once when events are lost, and refuses a software event without fuss', () => {
    const { host, evd } = setUp({ qlen: 2 });
    evd.postSe(1);
    assert.equal(evd.feed.post(connection(DatEventNumber.ESTABLISHED)), true);
    assert.throws(() => evd.postSe(2), dat('DAT_QUEUE_FULL'));
    assert.equal(host.async.length, 0);
    assert.equal(evd.feed.post(connection(DatEventNumber.DISCONNECTED)), false);
    assert.equal(evd.feed.post(connection(DatEventNumber.DISCONNECTED)), false);
    assert.equal(host.async.length, 1);
    assert.equal(host.async[0]?.number, DatEventNumber.ASYNC_EVD_OVERFLOW);
    assert.equal(host.async[0].object, evd);
    assert.deepEqual(drain(evd), [1, DatEventNumber.ESTABLISHED]);
  });

  it('tells of its own overflow on the asynchronous EVD as soon as there is room', () => {
    const { host, evd } = setUp({ qlen: 1, streams: EvdFlags.ASYNC });
    host.reportAsync = (event) => void evd.feed.post(event);
    const error = { type: 'async-error', object: evd, reason: 0, message: 'x' } as const;
    for (let i = 0; i < 3; i++) {
      evd.feed.post({ ...error, number: DatEventNumber.ASYNC_IA_CATASTROPHIC });
    }
    const { ASYNC_IA_CATASTROPHIC, ASYNC_EVD_OVERFLOW } = DatEventNumber;
    assert.deepEqual(drain(evd), [ASYNC_IA_CATASTROPHIC, ASYNC_EVD_OVERFLOW]);
  });

  it('reports a CQ overrun', () => {
    const { host, evd } = setUp();
    host.cq.event(AsyncEventType.CQ_ERR);
    assert.equal(host.async[0]?.number, DatEventNumber.ASYNC_EVD_OVERFLOW);
    assert.equal(host.async[0].object, evd);
  });

  it('needs EvdFlags.SOFTWARE for software events', () => {
    const { evd } = setUp({ streams: EvdFlags.CR });
    assert.throws(() => evd.postSe(1), dat('DAT_INVALID_PARAMETER', 'DAT_INVALID_ARG1'));
  });

  it('resizes both ways without loss, hidden completions included', () => {
    const { host, evd } = setUp({ qlen: 4 });
    const ep = host.endpoint();
    ep.suppressed.add(3);
    for (const cookie of [1, 2, 3]) host.cq.add({ context: ep.context, cookie });
    evd.postSe('s');
    assert.equal(label(evd.dequeue()), 1);
    evd.resize(16);
    for (const cookie of [4, 5]) host.cq.add({ context: ep.context, cookie });
    evd.postSe('t');
    assert.throws(() => evd.resize(3), dat('DAT_INVALID_STATE'));
    evd.resize(8);
    assert.equal(evd.query().qlen, 8);
    assert.deepEqual(drain(evd), [2, 's', 4, 5, 't']);
    evd.resize(1);
    host.cq.add({ context: ep.context, cookie: 6 });
    assert.deepEqual(drain(evd), [6]);
    assert.throws(() => evd.resize(0), dat('DAT_INVALID_PARAMETER', 'DAT_INVALID_ARG2'));
    assert.deepEqual(ep.seen, [1, 2, 3, 4, 5, 6]);
  });

  it('cannot be freed in use; free ends waiters and refuses later calls', async () => {
    const { host, evd } = setUp();
    const detach = evd.feed.attach();
    await assert.rejects(evd.free(), dat('DAT_INVALID_STATE', 'DAT_INVALID_STATE_EVD_IN_USE'));
    detach();
    const waiting = evd.wait();
    const freed = evd.free();
    await assert.rejects(waiting, dat('DAT_ABORT'));
    await freed;
    assert.equal(host.cq.destroyed, true);
    assert.equal(host.kept, 0);
    const gone = dat('DAT_INVALID_HANDLE', 'DAT_INVALID_HANDLE_EVD_REQUEST');
    assert.throws(() => evd.dequeue(), gone);
    assert.throws(() => evd.postSe(1), gone);
    assert.throws(() => evd.resize(1), gone);
    await assert.rejects(evd.wait(), gone);
    await assert.rejects(evd.free(), gone);
    assert.equal(evd.feed.post(connection(DatEventNumber.BROKEN)), false);
  });

  it('watches DTO queues for errors while connection events are wanted', () => {
    const { host, evd } = setUp({ streams: EvdFlags.DTO });
    const connect = new Evd(host, { id: 8, qlen: 4, streams: EvdFlags.CONNECTION });
    const ep = host.endpoint();
    const broken: unknown[] = [];
    ep.onEach = (cookie, status) => {
      if (status !== WcStatus.SUCCESS) connect.feed.post(connection(DatEventNumber.BROKEN));
    };
    const unwatch = watchErrors(connect, evd);
    assert.equal(host.cq.armed, 'none');
    const subscription = connect.events$.subscribe((event) => broken.push(label(event)));
    assert.equal(host.cq.armed, 'solicited');
    host.cq.add({ context: ep.context, cookie: 1 });
    host.run();
    assert.deepEqual(ep.seen, []);
    host.cq.add({ context: ep.context, cookie: 2, status: WcStatus.RETRY_EXC_ERR });
    host.run();
    assert.deepEqual(ep.seen, [1, 2]);
    assert.deepEqual(broken, [DatEventNumber.BROKEN]);
    assert.equal(host.cq.armed, 'solicited');
    unwatch();
    unwatch();
    host.cq.add({ context: ep.context, cookie: 3, status: WcStatus.RETRY_EXC_ERR });
    host.run();
    assert.equal(host.cq.armed, 'none');
    assert.equal(evd.query().staleNotifications, 1);
    subscription.unsubscribe();
    assert.deepEqual(drain(evd), [1, 2, 3]);
  });
});
