import assert from 'node:assert/strict';
import {
  DatEventNumber,
  Evd,
  EvdFlags,
  UPCALL_SAME,
  type Upcall,
} from '../../../core/evd/index.js';
import { type Logger, WcStatus, silentLogger } from '../../../core/spi/index.js';
import { FakeHost, label, settle } from './fake-host.js';
import { ALL, connection, dat, drain, setUp } from './set-up.js';

/** A promise and what settles it. */
function gate(): { promise: Promise<void>; open: () => void; fail: (error: Error) => void } {
  let open = (): void => undefined;
  let fail = (_error: Error): void => undefined;
  const promise = new Promise<void>((resolve, reject) => {
    open = resolve;
    fail = reject;
  });
  return { promise, open, fail };
}

function withUpcalls(policy: 'DISABLE' | 'ONE' | 'MANY') {
  const got: unknown[] = [];
  const more: boolean[] = [];
  const { host, evd } = setUp({
    policy,
    handler: (event, upcall) => {
      got.push(label(event));
      more.push(upcall.moreEvents);
    },
  });
  return { host, evd, got, more };
}

describe('evd: upcalls', () => {
  it('rule 1: drain, arm, look once more loses nothing between the drain and the arm', () => {
    const { host, evd, got } = withUpcalls('ONE');
    const ep = host.endpoint();
    assert.equal(host.cq.armed, 'next');
    host.cq.beforeArm = () => {
      host.cq.beforeArm = () => undefined;
      host.cq.add({ context: ep.context, cookie: 2 });
    };
    host.cq.add({ context: ep.context, cookie: 1 });
    host.run();
    assert.deepEqual(got, [1, 2]);
    assert.equal(host.cq.armed, 'next');
    evd.modifyUpcall('DISABLE');
  });

  it('rule 1: a disabled EVD is not armed, and absorbs one stale notification', () => {
    const { host, evd, got } = withUpcalls('ONE');
    const ep = host.endpoint();
    evd.modifyUpcall('DISABLE');
    const arms = host.cq.arms;
    for (const cookie of [1, 2]) host.cq.add({ context: ep.context, cookie });
    host.run();
    assert.deepEqual([got.length, host.cq.arms, evd.query().staleNotifications], [0, arms, 1]);
    assert.deepEqual(drain(evd), [1, 2]);
  });

  it('rule 1: a failing arm is reported', () => {
    const { host, evd, got } = withUpcalls('DISABLE');
    host.cq.failArms = 1;
    evd.modifyUpcall('ONE');
    evd.postSe('still delivered');
    host.run();
    assert.equal(host.async[0]?.number, DatEventNumber.ASYNC_PROVIDER_INTERNAL_ERROR);
    assert.equal(host.async[0].object, evd);
    assert.deepEqual(got, ['still delivered']);
  });

  it('rule 2: within an upcall the consumer may dequeue, post, change and free', async () => {
    const host = new FakeHost();
    const got: unknown[] = [];
    let depth = 0;
    const evd = new Evd(host, { id: 1, qlen: 8, streams: ALL });
    const ep = host.endpoint();
    evd.modifyUpcall('MANY', (event, upcall) => {
      assert.equal(depth++, 0, 'the trigger recurses');
      got.push(label(event));
      if (got.length === 1) {
        host.cq.add({ context: ep.context, cookie: 9, status: WcStatus.LOC_PROT_ERR });
        got.push(label(evd.dequeue()));
        evd.modifyUpcall('ONE', (next) => {
          got.push(['changed', label(next)]);
          void upcall.free();
        });
      }
      depth--;
    });
    for (const payload of [1, 2, 3]) evd.postSe(payload);
    host.run();
    await settle();
    assert.deepEqual(got, [1, 2, ['changed', 3]]);
    assert.throws(() => evd.dequeue(), dat('DAT_INVALID_HANDLE'));
    assert.equal(host.kept, 0);
  });

  it('rule 2: TEARDOWN from one and from two upcalls does not wait for its callers', async () => {
    const host = new FakeHost();
    const upcalls: Upcall[] = [];
    const ends = [gate(), gate(), gate()];
    const evd = new Evd(host, {
      id: 1,
      qlen: 8,
      streams: ALL,
      policy: 'MANY',
      limit: 3,
      handler: (_event, upcall) => ends[upcalls.push(upcall) - 1]?.promise,
    });
    for (const payload of [1, 2, 3, 4]) evd.postSe(payload);
    host.run();
    assert.equal(upcalls.length, 3);
    const resolved: string[] = [];
    const [a, b] = upcalls;
    assert.ok(a && b);
    void a.teardown().then(() => resolved.push('a'));
    void b.teardown().then(() => resolved.push('b'));
    void evd.modifyUpcall('TEARDOWN').then(() => resolved.push('outside'));
    await settle();
    assert.deepEqual(resolved, []);
    ends[2]?.open();
    await settle();
    assert.deepEqual(resolved, ['b']);
    ends[1]?.open();
    await settle();
    assert.deepEqual(resolved, ['b', 'a']);
    ends[0]?.open();
    await settle();
    assert.deepEqual(resolved, ['b', 'a', 'outside']);
    assert.deepEqual(drain(evd), [4]);
  });

  it('rule 3: deliver, keep, refuse', () => {
    const { host, evd, got } = withUpcalls('DISABLE');
    evd.postSe(1);
    evd.modifyUpcall('ONE', UPCALL_SAME, { pending: 'deliver' });
    host.run();
    assert.deepEqual(got, [1]);
    evd.modifyUpcall('DISABLE');
    for (const payload of [2, 3]) evd.postSe(payload);
    evd.modifyUpcall('ONE', UPCALL_SAME, { pending: 'keep' });
    host.run();
    assert.deepEqual(got, [1]);
    evd.postSe(4);
    host.run();
    assert.deepEqual(got, [1, 2, 3, 4]);
    evd.modifyUpcall('DISABLE');
    host.cq.beforeArm = () => {
      host.cq.beforeArm = () => undefined;
      host.cq.add({ context: ep.context, cookie: 5 });
    };
    const ep = host.endpoint();
    host.run();
    host.cq.armed = 'none';
    evd.resize(8);
    assert.throws(
      () => evd.modifyUpcall('ONE', UPCALL_SAME, { pending: 'refuse' }),
      (error: { value: unknown }) => dat('DAT_INVALID_STATE')(error) && error.value === 1,
    );
    assert.equal(evd.query().policy, 'DISABLE');
    host.run();
    assert.deepEqual(drain(evd), [5]);
    evd.modifyUpcall('ONE', UPCALL_SAME, { pending: 'refuse' });
    assert.equal(evd.query().policy, 'ONE');
  });

  it('rule 4: an upcall is told whether more events wait', () => {
    const { host, evd, more } = withUpcalls('ONE');
    const ep = host.endpoint();
    evd.postSe(1);
    host.cq.add({ context: ep.context, cookie: 2 });
    host.run();
    assert.deepEqual(more, [true, false]);
  });

  it('rule 5: a handler that throws or rejects is reported; later events still come', async () => {
    const host = new FakeHost();
    const got: unknown[] = [];
    const evd = new Evd(host, {
      id: 1,
      qlen: 8,
      streams: ALL,
      policy: 'ONE',
      handler: (event) => {
        got.push(label(event));
        if (got.length === 1) throw new Error('thrown');
        return got.length === 2 ? Promise.reject(new Error('rejected')) : undefined;
      },
    });
    for (const payload of [1, 2, 3]) evd.postSe(payload);
    host.run();
    await settle();
    host.run();
    assert.deepEqual(got, [1, 2, 3]);
    assert.deepEqual(
      host.async.map(({ object, cause }) => [object === evd, (cause as Error).message]),
      [
        [true, 'thrown'],
        [true, 'rejected'],
      ],
    );
  });

  it('rule 5: a failing handler of the asynchronous EVD is not told of itself for ever', () => {
    const host = new FakeHost();
    let calls = 0;
    const evd = new Evd(host, {
      id: 1,
      qlen: 8,
      streams: EvdFlags.ASYNC,
      policy: 'ONE',
      handler: () => {
        calls++;
        throw new Error('always');
      },
    });
    host.reportAsync = (event) => void evd.feed.post(event);
    const { ASYNC_EP_BROKEN: number } = DatEventNumber;
    const object = new Evd(host, { id: 2, qlen: 1 });
    evd.feed.post({ type: 'async-error', number, object, reason: 0, message: 'x' });
    host.run();
    assert.equal(calls, 2);
  });

  it('rule 7: API calls are traced like calls, with symbolic values', () => {
    const lines: string[] = [];
    const host = new FakeHost();
    const logger: Logger = {
      ...silentLogger,
      isDebugEnabled: () => true,
      debug: (line) => void lines.push(line),
    };
    host.logger = logger;
    const evd = new Evd(host, { id: 7, qlen: 8, streams: ALL });
    evd.modifyUpcall('ONE', () => undefined);
    evd.modifyUpcall('DISABLE');
    evd.resize(16);
    assert.deepEqual(lines, [
      'evd.modifyUpcall(evd=7, policy=ONE, handler=function)',
      'evd.modifyUpcall(evd=7, policy=DISABLE, handler=UPCALL_SAME)',
      'evd.resize(evd=7, qlen=16)',
    ]);
  });

  it('rule 8: nothing waits for outside stimulus once an upcall has ended', async () => {
    const host = new FakeHost();
    const got: unknown[] = [];
    const first = gate();
    const evd = new Evd(host, {
      id: 1,
      qlen: 8,
      streams: ALL,
      policy: 'ONE',
      handler: (event) => {
        got.push(label(event));
        return got.length === 1 ? first.promise : undefined;
      },
    });
    const ep = host.endpoint();
    host.cq.add({ context: ep.context, cookie: 1 });
    host.run();
    host.cq.add({ context: ep.context, cookie: 2 });
    evd.feed.post(connection(DatEventNumber.DISCONNECTED));
    host.run();
    assert.deepEqual(got, [1]);
    first.open();
    await settle();
    host.run();
    assert.deepEqual(got, [1, 2, DatEventNumber.DISCONNECTED]);
  });

  it('DISABLE: no upcall starts once the call has returned', () => {
    const { host, evd, got } = withUpcalls('ONE');
    evd.postSe(1);
    evd.modifyUpcall('DISABLE');
    host.run();
    assert.deepEqual(got, []);
    assert.deepEqual(drain(evd), [1]);
  });

  it('NOTIFY: one call for what has come, one more for what comes meanwhile', () => {
    const host = new FakeHost();
    let calls = 0;
    const evd = new Evd(host, { id: 1, qlen: 8, streams: ALL });
    evd.modifyUpcall('NOTIFY', (event) => {
      assert.equal(event, undefined);
      if (++calls === 1) evd.postSe('meanwhile');
    });
    for (const payload of [1, 2, 3]) evd.postSe(payload);
    host.run();
    assert.equal(calls, 2);
    assert.deepEqual(drain(evd), [1, 2, 3, 'meanwhile']);
    host.run();
    assert.equal(calls, 2);
  });

  it('MANY: upcalls overlap up to the limit, started in event order', async () => {
    const host = new FakeHost();
    const got: unknown[] = [];
    const ends = [gate(), gate(), gate()];
    const evd = new Evd(host, {
      id: 1,
      qlen: 8,
      streams: ALL,
      policy: 'MANY',
      limit: 2,
      handler: (event) => ends[got.push(label(event)) - 1]?.promise,
    });
    for (const payload of [1, 2, 3]) evd.postSe(payload);
    host.run();
    assert.deepEqual(got, [1, 2]);
    ends[1]?.open();
    await settle();
    host.run();
    assert.deepEqual(got, [1, 2, 3]);
    assert.equal(evd.query().upcallsInProgress, 2);
  });

  it('disable and enable of the EVD hold upcalls back and lose nothing', () => {
    const { host, evd, got } = withUpcalls('ONE');
    evd.disable();
    evd.postSe(1);
    host.run();
    assert.deepEqual(got, []);
    evd.enable();
    host.run();
    assert.deepEqual(got, [1]);
  });

  it('excludes waiters, iterators and subscribers while enabled, and they it', async () => {
    const { host, evd } = withUpcalls('ONE');
    await assert.rejects(evd.wait(), dat('DAT_INVALID_STATE'));
    let error: unknown;
    evd.events$.subscribe({ error: (reason: unknown) => (error = reason) });
    assert.ok(dat('DAT_INVALID_STATE')(error));
    evd.modifyUpcall('DISABLE');
    const subscription = evd.events$.subscribe();
    assert.throws(() => evd.modifyUpcall('ONE'), dat('DAT_INVALID_STATE'));
    subscription.unsubscribe();
    const waiting = evd.wait();
    assert.throws(
      () => evd.modifyUpcall('ONE'),
      dat('DAT_INVALID_STATE', 'DAT_INVALID_STATE_EVD_WAITER'),
    );
    evd.postSe(1);
    host.run();
    await waiting;
    evd.modifyUpcall('ONE');
  });
});

describe('evd: events$', () => {
  it('starts later, has one subscriber, leaves the rest queued, completes on free', async () => {
    const { host, evd } = setUp();
    const got: unknown[] = [];
    evd.postSe(1);
    const first = evd.events$.subscribe((event) => {
      got.push(label(event));
      if (got.length === 2) first.unsubscribe();
    });
    assert.deepEqual(got, []);
    for (const payload of [2, 3]) evd.postSe(payload);
    host.run();
    assert.deepEqual(got, [1, 2]);
    assert.equal(host.kept, 0);
    const rest: unknown[] = [];
    evd.events$.subscribe({
      next: (event) => void rest.push(label(event)),
      complete: () => void rest.push('end'),
    });
    host.run();
    await evd.free();
    assert.deepEqual(rest, [3]);
    host.run();
    assert.equal(rest.length, 2);
  });
});
