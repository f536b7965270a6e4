/** Edges of an EVD's queue: where events stand, what is heard of them, what cannot be read. */
import assert from 'node:assert/strict';
import {
  type ConnectionEvent,
  DatEventNumber,
  EventBatch,
  Evd,
  EvdFlags,
} from '../../../core/evd/index.js';
import { SpiError, WcFlags, WcStatus } from '../../../core/spi/index.js';
import { scene } from './cno-scene.js';
import { FakeHost, label } from './fake-host.js';
import { ALL, connection, dat, drain, setUp } from './set-up.js';

const { BROKEN, ESTABLISHED } = DatEventNumber;

describe('evd: the place of an event', () => {
  it("asked for as 'after' with no completion under way is here, and can be dequeued", () => {
    const { host, evd } = setUp();
    const ep = host.endpoint();
    evd.feed.post(connection(BROKEN), 'after');
    assert.equal(label(evd.dequeue()), BROKEN);
    host.cq.add({ context: ep.context, cookie: 1 });
    evd.feed.scan();
    evd.feed.post(connection(BROKEN), 'after');
    host.cq.add({ context: ep.context, cookie: 2 });
    assert.deepEqual(drain(evd), [1, BROKEN, 2]);
  });

  it('behind several of them that were put there at once', () => {
    const { host, evd } = setUp();
    const ep = host.endpoint();
    ep.onEach = (cookie) => {
      if (cookie !== 2) return;
      evd.feed.post(connection(ESTABLISHED), 'behind');
      evd.feed.post(connection(BROKEN), 'after');
      evd.feed.post(connection(BROKEN), 'after');
    };
    for (const cookie of [1, 2, 3]) host.cq.add({ context: ep.context, cookie });
    assert.deepEqual(drain(evd), [1, ESTABLISHED, 2, BROKEN, BROKEN, 3]);
  });

  it('a look from within `onCompletion` sees no completion twice, nor too early', () => {
    const { host, evd } = setUp();
    const ep = host.endpoint();
    const looks: number[] = [];
    ep.onEach = () => looks.push(evd.feed.scan());
    for (const cookie of [1, 2, 3]) host.cq.add({ context: ep.context, cookie });
    assert.equal(evd.feed.scan(), 3);
    assert.deepEqual(
      [ep.seen, looks],
      [
        [1, 2, 3],
        [0, 0, 0],
      ],
    );
    assert.deepEqual(drain(evd), [1, 2, 3]);
  });

  it('survives a resize while the queue is full and has wrapped', () => {
    const { evd } = setUp({ qlen: 4 });
    const events = (first: number, count: number): ConnectionEvent[] =>
      Array.from({ length: count }, (_, i) => ({
        ...connection(BROKEN),
        reason: String(first + i),
      }));
    const reasons = (): unknown[] => {
      const list: unknown[] = [];
      for (let event = evd.dequeue(); event !== undefined; event = evd.dequeue()) {
        list.push(event.type === 'connection' ? event.reason : event);
      }
      return list;
    };
    for (const event of events(0, 3)) evd.feed.post(event);
    evd.dequeue();
    evd.dequeue();
    for (const event of events(3, 3)) assert.equal(evd.feed.post(event), true);
    evd.resize(6);
    for (const event of events(6, 2)) assert.equal(evd.feed.post(event), true);
    assert.equal(evd.feed.isFull, true);
    evd.resize(6);
    assert.deepEqual(reasons(), ['2', '3', '4', '5', '6', '7']);
    assert.equal(evd.feed.isFull, false);
  });
});

describe('evd: a queue without completions', () => {
  it('fills batches as far as they go, and tells of its overflow when there is room', () => {
    const { host, evd } = setUp({ qlen: 3, streams: EvdFlags.ASYNC | EvdFlags.SOFTWARE });
    host.reportAsync = (event) => void evd.feed.post(event);
    const batch = new EventBatch(4);
    assert.equal(evd.dequeueInto(batch), 0);
    for (const payload of [1, 2, 3]) evd.postSe(payload);
    const { ASYNC_IA_CATASTROPHIC: number, ASYNC_EVD_OVERFLOW, SOFTWARE } = DatEventNumber;
    assert.equal(
      evd.feed.post({ type: 'async-error', number, object: evd, reason: 0, message: 'lost' }),
      false,
    );
    assert.equal(evd.dequeueInto(batch, 2), 2);
    assert.deepEqual(batch.events.slice(0, 2).map(label), [1, 2]);
    assert.deepEqual(batch.events[2], undefined, 'not touched beyond what was asked for');
    assert.equal(evd.query().pending, 2);
    assert.equal(evd.dequeueInto(batch), 2);
    assert.deepEqual([...batch.numbers.subarray(0, 2)], [SOFTWARE, ASYNC_EVD_OVERFLOW]);
    assert.equal(evd.dequeueInto(batch), 0);
    assert.equal(batch.count, 0);
  });

  it('gives back what a loop has not read, to a batch as to others', async () => {
    const { evd } = setUp({ streams: EvdFlags.SOFTWARE });
    for (const payload of [1, 2, 3]) evd.postSe(payload);
    for await (const batch of evd) if (batch[0] !== undefined) break;
    const batch = new EventBatch(4);
    assert.equal(evd.dequeueInto(batch, 1), 1);
    assert.equal(label(batch.events[0]), 2);
    evd.postSe(4);
    assert.equal(evd.dequeueInto(batch), 2);
    assert.deepEqual(batch.events.slice(0, 2).map(label), [3, 4]);
  });
});

describe('evd: what a loop gives back', () => {
  it('is told to the CNO, which would not hear of it otherwise', async () => {
    const { host, cno, a } = scene();
    const iterator = a[Symbol.asyncIterator]();
    a.postSe(1);
    await iterator.next();
    host.run();
    assert.equal(cno.query().state, 'UNTRIGGERED');
    await iterator.return();
    host.run();
    assert.equal(cno.query().state, 'TRIGGERED');
    assert.equal(await cno.wait(), a);
    assert.deepEqual(drain(a), [1]);
  });
});

describe('evd: a completion queue that cannot be read', () => {
  const unreadable = (): never => {
    throw new SpiError('EIO', 'the device is gone');
  };
  const reports = (host: ReturnType<typeof setUp>['host']): number =>
    host.async.filter(({ cause }) => cause instanceof SpiError).length;

  it('costs no event that is posted', () => {
    const { host, evd } = setUp();
    host.cq.poll = unreadable;
    evd.postSe(1);
    assert.equal(evd.feed.post(connection(BROKEN)), true);
    assert.deepEqual([label(evd.dequeue()), label(evd.dequeue())], [1, BROKEN]);
  });

  it('is reported by the next look after a purge, and keeps none from being purged', () => {
    const { host, evd } = setUp();
    const ep = host.endpoint();
    for (const cookie of [1, 2]) host.cq.add({ context: ep.context, cookie });
    evd.feed.scan();
    let calls = 0;
    evd.modifyUpcall('ONE', () => void calls++, { pending: 'keep' });
    host.run();
    const { poll } = host.cq.constructor.prototype as { readonly poll: () => number };
    host.cq.poll = unreadable;
    evd.feed.purge(ep.context);
    host.run();
    assert.deepEqual([reports(host), calls], [1, 0]);
    host.cq.poll = poll;
    const { pending, dropped } = evd.query();
    assert.deepEqual([pending, dropped], [0, 2]);
  });
});

describe('evd: what is heard of completions', () => {
  function solicited({ reportsSolicited }: { readonly reportsSolicited: boolean }) {
    const host = new FakeHost();
    host.device.attributes.reportsSolicited = reportsSolicited;
    const dto = new Evd(host, { id: 1, qlen: 8, streams: ALL });
    dto.feed.attach('SOLICITED');
    const got: unknown[] = [];
    dto.modifyUpcall('ONE', (event) => {
      got.push(label(event));
    });
    host.run();
    assert.equal(host.cq.armed, 'solicited');
    return { host, dto, ep: host.endpoint(), got };
  }

  it('a failed one is heard, flag or no flag', () => {
    const { host, ep, got } = solicited({ reportsSolicited: true });
    host.cq.add({ context: ep.context, cookie: 1 });
    host.cq.add({ context: ep.context, cookie: 2, status: WcStatus.LOC_PROT_ERR });
    host.run();
    assert.deepEqual(got, [1, 2]);
  });

  it('the loudest of those that are found together is', () => {
    for (const flags of [WcFlags.SOLICITED, 0]) {
      const { host, dto, ep, got } = solicited({ reportsSolicited: true });
      host.cq.armed = 'none';
      host.cq.add({ context: ep.context, cookie: 1, flags });
      host.cq.add({ context: ep.context, cookie: 2 });
      assert.equal(dto.query().pending, 2);
      host.run();
      assert.deepEqual(got, flags === 0 ? [] : [1, 2]);
    }
  });

  it('one that the device has not notified of is not, whatever makes the EVD look', () => {
    const { host, dto, ep, got } = solicited({ reportsSolicited: false });
    host.cq.add({ context: ep.context, cookie: 1 });
    for (const look of [() => dto.enable(), () => dto.feed.scan(), () => dto.query()]) {
      look();
      host.run();
      assert.deepEqual(got, []);
    }
    host.cq.add({ context: ep.context, cookie: 2, flags: WcFlags.SOLICITED });
    host.run();
    assert.deepEqual(got, [1, 2]);
  });

  it('one that came during an arm is, unless the device says it is not solicited', () => {
    for (const reportsSolicited of [false, true]) {
      const { host, ep, got } = solicited({ reportsSolicited });
      host.cq.beforeArm = () => {
        host.cq.beforeArm = () => undefined;
        host.cq.add({ context: ep.context, cookie: 2 });
      };
      host.cq.add({ context: ep.context, cookie: 1, flags: WcFlags.SOLICITED });
      host.run();
      assert.deepEqual(got, reportsSolicited ? [1] : [1, 2]);
    }
  });
});

describe('evd: asking the device to notify', () => {
  it('is done once for as long as nothing has come', () => {
    const { host, evd } = setUp();
    evd.modifyUpcall('ONE', () => undefined);
    for (let i = 0; i < 3; i++) {
      evd.feed.hold()();
      evd.postSe(i);
      host.run();
    }
    assert.equal(host.cq.arms, 1);
    host.cq.add({ context: host.endpoint().context, cookie: 1 });
    host.run();
    assert.equal(host.cq.arms, 2);
  });

  it('in vain still shows what had come before', async () => {
    const { host, evd } = setUp();
    const { context } = host.endpoint();
    host.cq.failArms = 1;
    host.cq.beforeArm = () => {
      host.cq.beforeArm = () => undefined;
      host.cq.add({ context, cookie: 1 });
    };
    const waiting = evd.wait();
    host.run();
    assert.equal(label((await waiting).event), 1);
  });
});

describe('evd: upcalls under NOTIFY', () => {
  it('come for no event that the one before has dequeued itself', () => {
    const { host, evd } = setUp();
    let calls = 0;
    const got: unknown[] = [];
    evd.modifyUpcall('NOTIFY', () => {
      calls++;
      evd.postSe('in the handler');
      got.push(...drain(evd));
    });
    evd.postSe('before');
    host.run();
    assert.equal(calls, 1);
    assert.deepEqual(got, ['before', 'in the handler']);
    evd.postSe('after');
    host.run();
    assert.equal(calls, 2);
  });

  it('come for no completion whose endpoint is gone', () => {
    for (const policy of ['ONE', 'MANY'] as const) {
      const { host, evd } = setUp();
      const ep = host.endpoint();
      let calls = 0;
      evd.modifyUpcall(policy, () => void calls++);
      host.cq.add({ context: ep.context, cookie: 1 });
      evd.feed.scan();
      host.owners.free(ep.context);
      host.run();
      const { pending, upcallsInProgress, dropped } = evd.query();
      assert.deepEqual([calls, pending, upcallsInProgress, dropped], [0, 0, 0, 1]);
      assert.equal(host.async.length, 0);
      assert.equal(host.cq.armed, 'next');
    }
  });
});

describe('evd: full', () => {
  it('a posted event says whether it was queued', () => {
    const { evd } = setUp({ qlen: 1 });
    assert.equal(evd.feed.post(connection(ESTABLISHED)), true);
    assert.equal(evd.feed.isFull, true);
    assert.equal(evd.feed.post(connection(BROKEN)), false);
    assert.throws(() => evd.postSe(1), dat('DAT_QUEUE_FULL'));
    assert.equal(label(evd.dequeue()), ESTABLISHED);
    assert.equal(evd.feed.isFull, false);
    assert.equal(evd.counters().lost, 1);
  });
});
