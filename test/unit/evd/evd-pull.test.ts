import assert from 'node:assert/strict';
import type { Ep } from '../../../core/dat/index.js';
import { DatError } from '../../../core/errors/index.js';
import {
  DatDtoStatus,
  type DatEvent,
  DatEventNumber,
  Evd,
  EvdFlags,
  type EvdOptions,
  EvdState,
  EventBatch,
  type ConnectionEvent,
} from '../../../core/evd/index.js';
import { AsyncEventType, WcFlags, WcStatus } from '../../../core/spi/index.js';
import { FakeHost, label, settle } from './fake-host.js';

const ALL = EvdFlags.DEFAULT | EvdFlags.SOFTWARE;

function setUp(options: Partial<EvdOptions> = {}): { host: FakeHost; evd: Evd } {
  const host = new FakeHost();
  const evd = new Evd(host, { id: 7, qlen: 8, streams: ALL, ...options });
  return { host, evd };
}

function connection(number: ConnectionEvent['number']): ConnectionEvent {
  return { type: 'connection', number, ep: {} as Ep, privateData: new Uint8Array() };
}

function drain(evd: Evd): unknown[] {
  const labels: unknown[] = [];
  for (let event = evd.dequeue(); event !== undefined; event = evd.dequeue()) {
    labels.push(label(event));
  }
  return labels;
}

function dat(code: string, subtype?: string) {
  return (error: unknown): boolean => {
    assert.ok(DatError.isDatError(error), String(error));
    assert.equal(error.code, code);
    if (subtype !== undefined) assert.equal(error.subtype, subtype);
    return true;
  };
}

describe('evd: streams and queues', () => {
  it('has a completion queue iff completions feed it', () => {
    assert.ok(setUp({ streams: EvdFlags.DTO }).evd.cq);
    assert.ok(setUp({ streams: EvdFlags.RMR_BIND | EvdFlags.CR }).evd.cq);
    const rest = EvdFlags.CR | EvdFlags.CONNECTION | EvdFlags.ASYNC | EvdFlags.SOFTWARE;
    assert.equal(setUp({ streams: rest }).evd.cq, undefined);
  });

  it('refuses qlen, streams, policy, handler and limit out of range', () => {
    const bad: Partial<EvdOptions>[] = [
      { qlen: 0 },
      { qlen: 1.5 },
      { qlen: 4097 },
      { streams: 0 },
      { streams: 0x200 },
      { policy: 'ONE' },
      { policy: 'MANY', handler: () => undefined, limit: 0 },
    ];
    for (const options of bad) {
      assert.throws(() => setUp(options), dat('DAT_INVALID_PARAMETER'), JSON.stringify(options));
    }
  });

  it('dequeues completions in order, each shown to its endpoint once', () => {
    const { host, evd } = setUp();
    const ep = host.endpoint();
    for (const cookie of [1, 2, 3]) host.cq.add({ context: ep.context, cookie, lengthBytes: 64 });
    const first = evd.dequeue();
    assert.deepEqual(ep.seen, [1, 2, 3]);
    assert.ok(
      first?.type === 'dto' && first.ep === ep.asEndpoint && first.transferredLength === 64,
    );
    assert.deepEqual(drain(evd), [2, 3]);
    assert.deepEqual(ep.seen, [1, 2, 3]);
    assert.equal(evd.dequeue(), undefined);
    assert.equal(host.cq.ring.length, 0);
  });

  it('gives suppressed completions back to the ring unseen', () => {
    const { host, evd } = setUp();
    const ep = host.endpoint();
    ep.suppressed.add(1).add(2).add(4);
    for (const cookie of [1, 2, 3, 4]) host.cq.add({ context: ep.context, cookie });
    assert.equal(evd.query().pending, 1);
    assert.deepEqual(drain(evd), [3]);
    assert.equal(host.cq.ring.length, 0);
    assert.deepEqual(ep.seen, [1, 2, 3, 4]);
  });

  it('drops completions of a freed endpoint, not giving them to the next in its slot', () => {
    const { host, evd } = setUp();
    const gone = host.endpoint();
    host.cq.add({ context: gone.context, cookie: 1 });
    assert.equal(evd.scan(), 1);
    host.cq.add({ context: gone.context, cookie: 2 });
    host.owners.free(gone.context);
    const ep = host.endpoint();
    assert.notEqual(ep.context, gone.context);
    host.cq.add({ context: ep.context, cookie: 3 });
    assert.deepEqual(drain(evd), [3]);
    assert.deepEqual(gone.seen, [1]);
    assert.equal(evd.query().dropped, 2);
  });

  it('purges what an endpoint leaves behind', () => {
    const { host, evd } = setUp();
    const [a, b] = [host.endpoint(), host.endpoint()];
    for (const ep of [a, b, a, b]) host.cq.add({ context: ep.context, cookie: ep === a ? 1 : 2 });
    evd.purge(a.context);
    assert.equal(evd.query().pending, 2);
    assert.deepEqual(drain(evd), [2, 2]);
  });

  it('fills a batch without event objects, in order with software events', () => {
    const { host, evd } = setUp();
    const ep = host.endpoint();
    const flags = WcFlags.WITH_IMM;
    host.cq.add({ context: ep.context, cookie: 5 + 2 ** 40, lengthBytes: 9, flags, immediate: 77 });
    host.cq.add({ context: ep.context, cookie: 6, status: WcStatus.REM_ACCESS_ERR });
    evd.postSe('soft');
    const batch = new EventBatch(2);
    assert.equal(evd.dequeueInto(batch), 2);
    assert.deepEqual([...batch.cookies], [5 + 2 ** 40, 6]);
    assert.deepEqual([...batch.lengths], [9, 0]);
    assert.deepEqual([...batch.immediates], [77, 0]);
    assert.deepEqual([...batch.statuses], [DatDtoStatus.SUCCESS, DatDtoStatus.REMOTE_ACCESS]);
    assert.deepEqual(batch.eps, [ep, ep]);
    assert.equal(evd.dequeueInto(batch), 1);
    assert.equal(label(batch.events[0]), 'soft');
    assert.equal(batch.numbers[0], DatEventNumber.SOFTWARE);
    assert.equal(evd.dequeueInto(batch), 0);
  });

  it('keeps order across the wrap of the ring and of u32', () => {
    const { host, evd } = setUp({ qlen: 4 });
    host.cq.ring.producer = host.cq.ring.consumer = 0xfffffffe;
    const fresh = new Evd(host, { id: 8, qlen: 4, streams: ALL });
    const cq = host.cqs[1];
    assert.ok(cq);
    const ep = host.endpoint();
    for (let i = 0; i < 20; i++) {
      cq.add({ context: ep.context, cookie: i });
      fresh.postSe(`s${i}`);
      cq.add({ context: ep.context, cookie: 100 + i });
      assert.deepEqual(drain(fresh), [i, `s${i}`, 100 + i]);
    }
    assert.equal(evd.dequeue(), undefined);
  });

  it("drives the device from dequeue in polling mode 'spin' only when the queue is empty", () => {
    const { host, evd } = setUp({ polling: 'spin' });
    const ep = host.endpoint();
    host.onProgress = () => host.cq.add({ context: ep.context, cookie: 1 });
    assert.equal(label(evd.dequeue()), 1);
    assert.equal(host.progressed, 1);
    host.cq.add({ context: ep.context, cookie: 2 });
    assert.equal(label(evd.dequeue()), 2);
    assert.equal(host.progressed, 1);
    assert.equal(host.cq.polling, 'spin');
  });
});

describe('evd: order on a shared EVD', () => {
  it('puts a software event behind the completions that were there when it was made', () => {
    const { host, evd } = setUp();
    const ep = host.endpoint();
    host.cq.add({ context: ep.context, cookie: 1 });
    evd.post(connection(DatEventNumber.DISCONNECTED));
    host.cq.add({ context: ep.context, cookie: 2 });
    assert.deepEqual(drain(evd), [1, DatEventNumber.DISCONNECTED, 2]);
  });

  it('puts what onCompletion posts in front of its completion, or behind on request', () => {
    const { host, evd } = setUp();
    const ep = host.endpoint();
    ep.onEach = (cookie) => {
      if (cookie === 2) evd.post(connection(DatEventNumber.ESTABLISHED));
      if (cookie === 3) evd.post(connection(DatEventNumber.BROKEN), 'after');
    };
    for (const cookie of [1, 2, 3, 4]) host.cq.add({ context: ep.context, cookie });
    const { ESTABLISHED, BROKEN } = DatEventNumber;
    assert.deepEqual(drain(evd), [1, ESTABLISHED, 2, 3, BROKEN, 4]);
  });

  it("puts a 'here' event in front of completions that nobody has looked at", () => {
    const { host, evd } = setUp();
    const ep = host.endpoint();
    host.cq.add({ context: ep.context, cookie: 1 });
    evd.scan();
    host.cq.add({ context: ep.context, cookie: 2 });
    evd.post(connection(DatEventNumber.ESTABLISHED), 'here');
    assert.deepEqual(drain(evd), [1, DatEventNumber.ESTABLISHED, 2]);
  });

  it('delivers an event whose completion is suppressed', () => {
    const { host, evd } = setUp();
    const ep = host.endpoint();
    ep.suppressed.add(1);
    ep.onEach = () => evd.post(connection(DatEventNumber.ESTABLISHED));
    host.cq.add({ context: ep.context, cookie: 1 });
    assert.deepEqual(drain(evd), [DatEventNumber.ESTABLISHED]);
  });

  it('has queued the event on another EVD before the later completion can be dequeued', () => {
    const { host, evd } = setUp({ streams: EvdFlags.DTO });
    const connect = new Evd(host, { id: 8, qlen: 4, streams: EvdFlags.CONNECTION });
    const ep = host.endpoint();
    ep.onEach = () => connect.post(connection(DatEventNumber.ESTABLISHED));
    host.cq.add({ context: ep.context, cookie: 1 });
    assert.equal(label(evd.dequeue()), 1);
    assert.equal(label(connect.dequeue()), DatEventNumber.ESTABLISHED);
  });
});

describe('evd: wait', () => {
  it('takes what waits at once, telling how many more', async () => {
    const { evd } = setUp();
    evd.postSe('a');
    evd.postSe('b');
    const { event, nmore } = await evd.wait();
    assert.deepEqual([label(event), nmore], ['a', 1]);
  });

  it('arms, looks once more, and wakes on a completion or a posted event', async () => {
    const { host, evd } = setUp();
    const ep = host.endpoint();
    host.cq.beforeArm = () => {
      host.cq.beforeArm = () => undefined;
      host.cq.add({ context: ep.context, cookie: 1 });
    };
    const between = evd.wait();
    host.run();
    assert.equal(label((await between).event), 1);
    const later = evd.wait();
    host.cq.add({ context: ep.context, cookie: 2 });
    host.run();
    assert.equal(label((await later).event), 2);
    const software = evd.wait();
    evd.postSe('x');
    host.run();
    assert.equal(label((await software).event), 'x');
  });

  it('waits for the threshold, and for the timeout without taking anything', async () => {
    const { host, evd } = setUp();
    let woken: DatEvent | undefined;
    const waiting = evd.wait({ threshold: 3 }).then((result) => (woken = result.event));
    for (const payload of [1, 2]) evd.postSe(payload);
    host.run();
    await settle();
    assert.equal(woken, undefined);
    evd.postSe(3);
    host.run();
    await waiting;
    assert.equal(label(woken), 1);
    const timed = evd.wait({ threshold: 3, timeoutMs: 20 });
    host.advance(19);
    host.advance(1);
    await assert.rejects(timed, (error: unknown) => {
      assert.ok(DatError.isDatError(error));
      assert.equal(error.code, 'DAT_TIMEOUT_EXPIRED');
      assert.deepEqual(error.value, { timeoutMs: 20, nmore: 2 });
      return true;
    });
    assert.equal(host.active.size, 0);
    assert.equal(host.kept, 0);
    await assert.rejects(evd.wait({ threshold: 3, timeoutMs: 0 }), dat('DAT_TIMEOUT_EXPIRED'));
    assert.deepEqual(drain(evd), [2, 3]);
  });

  it('ends by a signal, before and during', async () => {
    const { host, evd } = setUp();
    await assert.rejects(evd.wait({ signal: AbortSignal.abort() }), dat('DAT_INTERRUPTED_CALL'));
    const controller = new AbortController();
    const waiting = evd.wait({ signal: controller.signal });
    assert.equal(host.kept, 1);
    controller.abort(new Error('enough'));
    await assert.rejects(waiting, dat('DAT_INTERRUPTED_CALL', 'DAT_SUB_INTERRUPTED'));
    assert.equal(host.kept, 0);
    evd.postSe('kept');
    host.run();
    assert.deepEqual(drain(evd), ['kept']);
  });

  it('has one waiter, and dequeue beside it stays legal', async () => {
    const { host, evd } = setUp();
    const waiting = evd.wait();
    await assert.rejects(evd.wait(), dat('DAT_INVALID_STATE', 'DAT_INVALID_STATE_EVD_WAITER'));
    evd.postSe('taken');
    assert.deepEqual(drain(evd), ['taken']);
    host.run();
    evd.postSe('waited for');
    host.run();
    assert.equal(label((await waiting).event), 'waited for');
  });

  it('refuses thresholds and timeouts out of range, and thresholds without threshold mode', async () => {
    const { evd } = setUp();
    for (const threshold of [0, -1, 9, 1.5]) {
      await assert.rejects(
        evd.wait({ threshold }),
        dat('DAT_INVALID_PARAMETER', 'DAT_INVALID_ARG3'),
      );
    }
    await assert.rejects(
      evd.wait({ timeoutMs: -1 }),
      dat('DAT_INVALID_PARAMETER', 'DAT_INVALID_ARG2'),
    );
    await assert.rejects(evd.wait({ timeoutMs: NaN }), dat('DAT_INVALID_PARAMETER'));
    const detach = evd.attach('SOLICITED');
    await assert.rejects(
      evd.wait({ threshold: 2 }),
      dat('DAT_INVALID_STATE', 'DAT_INVALID_STATE_EVD_CONFIG_SOLICITED'),
    );
    assert.throws(() => evd.attach('NOTIFY'), dat('DAT_INVALID_STATE'));
    detach();
    detach();
    evd.attach('NOTIFY')();
  });

  it('arms for solicited completions only where the streams say so', () => {
    const { host, evd } = setUp();
    evd.attach('SOLICITED');
    void evd.wait();
    assert.equal(host.cq.armed, 'solicited');
  });

  it('is ended by setUnwaitable, and legal again after clearUnwaitable', async () => {
    const { host, evd } = setUp();
    const waiting = evd.wait();
    evd.setUnwaitable();
    const unwaitable = dat('DAT_INVALID_STATE', 'DAT_INVALID_STATE_EVD_UNWAITABLE');
    await assert.rejects(waiting, unwaitable);
    await assert.rejects(evd.wait(), unwaitable);
    assert.equal(evd.query().state & EvdState.UNWAITABLE, EvdState.UNWAITABLE);
    evd.clearUnwaitable();
    const again = evd.wait();
    evd.postSe(1);
    host.run();
    assert.equal(label((await again).event), 1);
  });

  it('iterates in batches, gives the EVD back, and ends when it is freed', async () => {
    const { host, evd } = setUp();
    const batches: unknown[][] = [];
    for (const payload of [1, 2]) evd.postSe(payload);
    for await (const batch of evd) {
      batches.push(batch.map(label));
      await assert.rejects(evd.wait(), dat('DAT_INVALID_STATE'));
      if (batches.length === 2) break;
      evd.postSe(3);
    }
    assert.deepEqual(batches, [[1, 2], [3]]);
    assert.equal(evd.query().taker, 'none');
    const later: unknown[] = [];
    const rest = (async () => {
      for await (const batch of evd) later.push(...batch.map(label));
    })();
    await settle();
    evd.postSe(4);
    host.run();
    await settle();
    await evd.free();
    await rest;
    assert.deepEqual(later, [4]);
    assert.equal(host.kept, 0);
  });
});

describe('evd: limits and the end', () => {
  it('names itself once when events are lost, and refuses a software event without fuss', () => {
    const { host, evd } = setUp({ qlen: 2 });
    evd.postSe(1);
    assert.equal(evd.post(connection(DatEventNumber.ESTABLISHED)), true);
    assert.throws(() => evd.postSe(2), dat('DAT_QUEUE_FULL'));
    assert.equal(host.async.length, 0);
    assert.equal(evd.post(connection(DatEventNumber.DISCONNECTED)), false);
    assert.equal(evd.post(connection(DatEventNumber.DISCONNECTED)), false);
    assert.equal(host.async.length, 1);
    assert.equal(host.async[0]?.number, DatEventNumber.ASYNC_EVD_OVERFLOW);
    assert.equal(host.async[0].object, evd);
    assert.deepEqual(drain(evd), [1, DatEventNumber.ESTABLISHED]);
  });

  it('tells of its own overflow on the asynchronous EVD as soon as there is room', () => {
    const { host, evd } = setUp({ qlen: 1, streams: EvdFlags.ASYNC });
    host.reportAsync = (event) => void evd.post(event);
    const error = { type: 'async-error', object: evd, reason: 0, message: 'x' } as const;
    for (let i = 0; i < 3; i++) {
      evd.post({ ...error, number: DatEventNumber.ASYNC_IA_CATASTROPHIC });
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
    const detach = evd.attach();
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
    assert.equal(evd.post(connection(DatEventNumber.BROKEN)), false);
  });

  it('watches DTO queues for errors while connection events are wanted', () => {
    const { host, evd } = setUp({ streams: EvdFlags.DTO });
    const connect = new Evd(host, { id: 8, qlen: 4, streams: EvdFlags.CONNECTION });
    const ep = host.endpoint();
    const broken: unknown[] = [];
    ep.onEach = (cookie, status) => {
      if (status !== WcStatus.SUCCESS) connect.post(connection(DatEventNumber.BROKEN));
    };
    const unwatch = connect.watchErrors(evd);
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
