import assert from 'node:assert/strict';

import {
  DatDtoStatus,
  DatEventNumber,
  Evd,
  EvdFlags,
  type EvdOptions,
  EventBatch,
} from '../../../core/evd/index.js';
import { WcFlags, WcStatus } from '../../../core/spi/index.js';

import { FakeHost, label } from './fake-host.js';
import { ALL, connection, dat, drain, setUp } from './set-up.js';

describe('evd: streams and queues', () => {
  it('has a completion queue iff completions feed it', () => {
    assert.ok(setUp({ streams: EvdFlags.DTO }).evd.feed.cq);
    assert.ok(setUp({ streams: EvdFlags.RMR_BIND | EvdFlags.CR }).evd.feed.cq);
    const rest = EvdFlags.CR | EvdFlags.CONNECTION | EvdFlags.ASYNC | EvdFlags.SOFTWARE;
    const { host, evd } = setUp({ streams: rest });
    assert.deepEqual(host.cqs, []);
    assert.throws(() => evd.feed.cq, /no completion queue/);
  });

  it('refuses qlen, streams, policy, handler and limit out of range', () => {
    const bad: Partial<EvdOptions>[] = [
      { qlen: 0 },
      { qlen: 1.5 },
      { streams: 0 },
      { streams: 0x200 },
      { policy: 'ONE' },
      { policy: 'MANY', handler: () => undefined, limit: 0 },
    ];
    for (const options of bad) {
      assert.throws(() => setUp(options), dat('DAT_INVALID_PARAMETER'), JSON.stringify(options));
    }
    const tooMany = dat('DAT_INSUFFICIENT_RESOURCES', 'DAT_RESOURCE_TEVD');
    assert.throws(() => setUp({ qlen: 4097 }), tooMany);
  });

  it('leaves no completion queue behind when its options are refused', () => {
    const host = new FakeHost();
    const made = (options: object): boolean => {
      assert.throws(
        () => new Evd(host, { id: 1, qlen: 8, streams: ALL, ...options }),
        dat('DAT_INVALID_PARAMETER'),
      );
      return host.cqs.some(({ destroyed }) => !destroyed);
    };
    for (const options of [{ polling: 'often' }, { policy: 'ONE' }, { qlen: 0.5 }]) {
      assert.equal(made(options), false, JSON.stringify(options));
    }
  });

  it('dequeues completions in order, each shown to its endpoint once', () => {
    const { host, evd } = setUp();
    const ep = host.endpoint();
    for (const cookie of [1, 2, 3]) host.cq.add({ context: ep.context, cookie, lengthBytes: 64 });
    const first = evd.dequeue();
    assert.deepEqual(ep.seen, [1, 2, 3]);
    assert.ok(
      first?.type === 'dto' && (first.ep as unknown) === ep && first.transferredLength === 64,
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
    assert.equal(evd.feed.scan(), 1);
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
    evd.feed.purge(a.context);
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

  it('refuses a batch limit that is negative', () => {
    const { evd } = setUp();
    evd.postSe(1);
    const batch = new EventBatch(4);
    for (const max of [-1, -(2 ** 40), 0.5]) {
      assert.throws(() => evd.dequeueInto(batch, max), dat('DAT_INVALID_PARAMETER'), String(max));
    }
    assert.equal(evd.dequeueInto(batch, 0), 0);
    assert.deepEqual(drain(evd), [1]);
  });

  it('keeps order across the wrap of the ring and of u32', () => {
    const host = new FakeHost();
    host.ringStart = 0xfffffffe;
    const evd = new Evd(host, { id: 8, qlen: 4, streams: ALL });
    const ep = host.endpoint();
    for (let i = 0; i < 20; i++) {
      host.cq.add({ context: ep.context, cookie: i });
      evd.postSe(`s${i}`);
      host.cq.add({ context: ep.context, cookie: 100 + i });
      assert.deepEqual(drain(evd), [i, `s${i}`, 100 + i]);
    }
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
    evd.feed.post(connection(DatEventNumber.DISCONNECTED));
    host.cq.add({ context: ep.context, cookie: 2 });
    assert.deepEqual(drain(evd), [1, DatEventNumber.DISCONNECTED, 2]);
  });

  it('puts what onCompletion posts in front of its completion, or behind on request', () => {
    const { host, evd } = setUp();
    const ep = host.endpoint();
    ep.onEach = (cookie) => {
      if (cookie === 2) evd.feed.post(connection(DatEventNumber.ESTABLISHED));
      if (cookie === 3) evd.feed.post(connection(DatEventNumber.BROKEN), 'after');
    };
    for (const cookie of [1, 2, 3, 4]) host.cq.add({ context: ep.context, cookie });
    const { ESTABLISHED, BROKEN } = DatEventNumber;
    assert.deepEqual(drain(evd), [1, ESTABLISHED, 2, 3, BROKEN, 4]);
  });

  it("puts a 'here' event in front of completions that nobody has looked at", () => {
    const { host, evd } = setUp();
    const ep = host.endpoint();
    host.cq.add({ context: ep.context, cookie: 1 });
    evd.feed.scan();
    host.cq.add({ context: ep.context, cookie: 2 });
    evd.feed.post(connection(DatEventNumber.ESTABLISHED), 'here');
    assert.deepEqual(drain(evd), [1, DatEventNumber.ESTABLISHED, 2]);
  });

  it('delivers an event whose completion is suppressed', () => {
    const { host, evd } = setUp();
    const ep = host.endpoint();
    ep.suppressed.add(1);
    ep.onEach = () => evd.feed.post(connection(DatEventNumber.ESTABLISHED));
    host.cq.add({ context: ep.context, cookie: 1 });
    assert.deepEqual(drain(evd), [DatEventNumber.ESTABLISHED]);
  });

  it('has queued the event on another EVD before the later completion can be dequeued', () => {
    const { host, evd } = setUp({ streams: EvdFlags.DTO });
    const connect = new Evd(host, { id: 8, qlen: 4, streams: EvdFlags.CONNECTION });
    const ep = host.endpoint();
    ep.onEach = () => connect.feed.post(connection(DatEventNumber.ESTABLISHED));
    host.cq.add({ context: ep.context, cookie: 1 });
    assert.equal(label(evd.dequeue()), 1);
    assert.equal(label(connect.dequeue()), DatEventNumber.ESTABLISHED);
  });
});
