/** Asking an EVD: counters, `query`, when a poll looks further, when a wait takes a turn. */
import assert from 'node:assert/strict';
import {
  Cno,
  DatEventNumber,
  Evd,
  EvdFlags,
  EvdState,
  EventBatch,
} from '../../../core/evd/index.js';
import { WcStatus } from '../../../core/spi/index.js';
import { FakeHost, label, settle } from './fake-host.js';
import { connection, dat, drain, setUp, watchErrors } from './set-up.js';

const { ESTABLISHED, BROKEN } = DatEventNumber;

describe('evd: counters', () => {
  it('count calls, finds, waits, notifications, posts and losses; reset begins anew', async () => {
    const { host, evd } = setUp({ qlen: 2 });
    const { context } = host.endpoint();
    const zero = {
      wait: 0,
      waitBlocked: 0,
      dtoNotify: 0,
      connectionNotify: 0,
      posted: 0,
      dequeue: 0,
      dequeueFound: 0,
      dequeueNotFound: 0,
      lost: 0,
    };
    assert.deepEqual(evd.counters(), zero);
    evd.feed.post(connection(ESTABLISHED));
    evd.feed.post({ type: 'software', number: DatEventNumber.SOFTWARE, payload: 1 });
    evd.feed.post(connection(BROKEN));
    const posts = { ...zero, posted: 3, connectionNotify: 2, lost: 1 };
    assert.deepEqual(evd.counters({ reset: true }), posts);
    assert.deepEqual(evd.counters(), zero);
    const batch = new EventBatch(4);
    evd.dequeue();
    evd.dequeueInto(batch);
    evd.dequeueInto(batch);
    for (let i = 0; i < 3; i++) evd.dequeue();
    const dequeues = { dequeue: 6, dequeueFound: 2, dequeueNotFound: 4 };
    assert.deepEqual(evd.counters({ reset: false }), { ...zero, ...dequeues });
    evd.counters({ reset: true });
    evd.postSe('at once');
    await evd.wait();
    const waiting = evd.wait();
    host.cq.add({ context });
    host.run();
    await waiting;
    await assert.rejects(evd.wait({ timeoutMs: 0 }));
    assert.deepEqual(evd.counters(), { ...zero, wait: 3, waitBlocked: 1, dtoNotify: 1 });
    const next = evd[Symbol.asyncIterator]().next();
    assert.equal(evd.counters().waitBlocked, 2, 'that of an iteration too');
    await evd.free();
    await next;
    assert.throws(() => evd.counters(), dat('DAT_INVALID_HANDLE'));
  });

  it('refuse what is no flag', () => {
    const { evd } = setUp();
    const call = (reset: unknown) => () => evd.counters({ reset: reset as boolean });
    const refused = dat('DAT_INVALID_PARAMETER', 'DAT_INVALID_ARG4');
    for (const reset of [1, 'yes', null]) assert.throws(call(reset), refused);
  });
});

describe('evd: query', () => {
  it('says what the EVD was made with, what takes its events and what waits', async () => {
    const host = new FakeHost();
    const cno = new Cno(host, { id: 1 });
    const handler = (): void => undefined;
    const options = { id: 7, qlen: 8, streams: EvdFlags.DTO | EvdFlags.SOFTWARE };
    const evd = new Evd(host, { ...options, policy: 'MANY', limit: 5, handler, cno });
    const { ENABLED, WAITABLE, CONFIG_THRESHOLD } = EvdState;
    const made = {
      id: 7,
      qlen: 8,
      state: ENABLED | WAITABLE | CONFIG_THRESHOLD,
      streams: options.streams,
      cno,
      policy: 'MANY',
      upcallLimit: 5,
      upcallsInProgress: 0,
      taker: 'upcall',
      pending: 0,
      users: 0,
      dropped: 0,
      staleNotifications: 0,
    } as const;
    assert.deepEqual(evd.query(), made);
    evd.disable();
    evd.setUnwaitable();
    const ends = [evd.feed.attach('SOLICITED'), evd.feed.attach('SOLICITED')];
    evd.postSe(1);
    host.cq.add({ context: host.endpoint().context });
    const { DISABLED, UNWAITABLE, CONFIG_SOLICITED, CONFIG_NOTIFY } = EvdState;
    const changed = { users: 2, pending: 2, state: DISABLED | UNWAITABLE | CONFIG_SOLICITED };
    assert.deepEqual(evd.query(), { ...made, ...changed });
    evd.modifyUpcall('DISABLE');
    evd.modifyCno(null);
    for (const end of ends) end();
    evd.feed.attach('NOTIFY');
    evd.enable();
    evd.clearUnwaitable();
    const now = evd.query();
    assert.equal(now.state, ENABLED | WAITABLE | CONFIG_NOTIFY);
    assert.deepEqual(
      [now.policy, now.upcallLimit, now.taker, now.cno],
      ['DISABLE', 0, 'none', null],
    );
    const plain = new Evd(host, { id: 8, qlen: 1, streams: EvdFlags.CR });
    assert.equal(plain.query().staleNotifications, 0);
  });

  it('names each kind of taker, and none when it has left', async () => {
    const { evd } = setUp();
    const taker = (): string => evd.query().taker;
    const stop = new AbortController();
    const waiting = evd.wait({ signal: stop.signal }).catch(() => undefined);
    assert.equal(taker(), 'waiter');
    stop.abort();
    await waiting;
    assert.equal(taker(), 'none');
    const iterator = evd[Symbol.asyncIterator]();
    const next = iterator.next();
    assert.equal(taker(), 'iterator');
    await iterator.return();
    await next;
    assert.equal(taker(), 'none');
    const subscription = evd.events$.subscribe();
    assert.equal(taker(), 'subscription');
    subscription.unsubscribe();
    assert.equal(taker(), 'none');
  });
});

describe('evd: polls of a consumer that spins', () => {
  function spinner() {
    const { host, evd } = setUp({ polling: 'spin' });
    const source = new Evd(host, { id: 8, qlen: 8, streams: EvdFlags.DTO });
    const ep = host.endpoint();
    ep.onEach = () => evd.feed.post(connection(BROKEN));
    watchErrors(evd, source);
    host.cqs[1]?.add({ context: ep.context, cookie: 1, status: WcStatus.RETRY_EXC_ERR });
    return { host, evd, ep };
  }
  const polls: Readonly<Record<string, (evd: Evd) => boolean>> = {
    dequeue: (evd) => evd.dequeue() !== undefined,
    dequeueInto: (evd) => evd.dequeueInto(new EventBatch(4)) === 1,
  };

  for (const [how, poll] of Object.entries(polls)) {
    it(`${how}: look at other queues now and then, and each drives the device`, () => {
      const { host, evd } = spinner();
      let count = 1;
      while (!poll(evd) && count < 1000) count++;
      assert.ok(count > 16 && count <= 64, `found by poll ${count}`);
      assert.equal(host.progressed, count);
      evd.setPolling('event');
      assert.equal(poll(evd), false);
      assert.equal(host.progressed, count, 'only in that mode');
    });

    it(`${how}: without a completion queue there is nothing to drive`, () => {
      const { host, evd } = setUp({ polling: 'spin', streams: EvdFlags.SOFTWARE });
      assert.equal(poll(evd), false);
      assert.equal(host.progressed, 0);
    });

    it(`${how}: what the device completes as it is driven is taken at once`, () => {
      const { host, evd } = setUp({ polling: 'spin' });
      const { context } = host.endpoint();
      host.onProgress = () => host.cq.add({ context, cookie: 1 });
      assert.equal(poll(evd), true);
      host.device.progress = () => false;
      assert.equal(poll(evd), false);
    });
  }

  it('a batch without room asks nothing of the device', () => {
    const { host, evd } = setUp({ polling: 'spin' });
    assert.equal(evd.dequeueInto(new EventBatch(4), 0), 0);
    assert.equal(host.progressed, 0);
  });

  it('setPolling changes the queue’s mode down to the device', () => {
    const { host, evd } = setUp();
    assert.equal(host.cq.polling, 'event');
    for (const mode of ['adaptive', 'spin', 'event'] as const) {
      evd.setPolling(mode);
      assert.equal(host.cq.polling, mode);
    }
    const refused = dat('DAT_INVALID_PARAMETER', 'DAT_INVALID_ARG2');
    assert.throws(() => evd.setPolling('busy' as 'spin'), refused);
    assert.equal(host.cq.polling, 'event');
    void evd.free();
    assert.throws(() => evd.setPolling('spin'), dat('DAT_INVALID_HANDLE'));
  });
});

describe('evd: a batch of events', () => {
  it('holds at most what is asked for, what it has room for, and says how many', () => {
    const { evd } = setUp();
    for (const payload of [1, 2, 3, 4, 5]) evd.postSe(payload);
    const batch = new EventBatch(2);
    assert.equal(evd.dequeueInto(batch, 1), 1);
    assert.equal(batch.count, 1);
    assert.equal(evd.dequeueInto(batch, 100), 2);
    assert.equal(batch.count, 2);
    assert.deepEqual(drain(evd), [4, 5]);
    assert.equal(evd.dequeueInto(batch), 0);
    assert.equal(batch.count, 0);
    const wrong = dat('DAT_INVALID_PARAMETER', 'DAT_INVALID_ARG1');
    assert.throws(() => evd.dequeueInto([] as unknown as EventBatch), wrong);
  });

  it('of an iteration holds 256 at most; the rest comes with the next', async () => {
    const { evd } = setUp({ qlen: 1024 });
    const all = Array.from({ length: 600 }, (_, i) => i);
    for (const i of all) evd.postSe(i);
    const lengths: number[] = [];
    const got: unknown[] = [];
    for await (const batch of evd) {
      lengths.push(batch.length);
      got.push(...batch.map(label));
      if (got.length === all.length) break;
    }
    assert.deepEqual(lengths, [256, 256, 88]);
    assert.deepEqual(got, all);
  });
});

describe('evd: waits that need not wait', () => {
  /** Waits with events there; of 1024, which one is not settled in the same turn. */
  async function turns(next: (evd: Evd) => Promise<unknown>) {
    const { host, evd } = setUp();
    const late: number[] = [];
    for (let i = 1; i <= 1024; i++) {
      evd.postSe(i);
      let got: unknown;
      const waiting = next(evd).then((event) => (got = event));
      await settle();
      if (got === undefined) {
        late.push(i);
        assert.equal(evd.query().pending, 1, 'it has taken nothing yet');
        host.advance(0);
      }
      assert.equal(await waiting, i);
    }
    assert.deepEqual([host.kept, host.active.size, evd.query().taker], [0, 0, 'none']);
    return late;
  }

  it('one in 256 does so for a turn of the event loop', async () => {
    const once = async (evd: Evd): Promise<unknown> => label((await evd.wait()).event);
    assert.deepEqual(await turns(once), [256, 512, 768, 1024]);
  });

  it('so does an iteration', async () => {
    const { host, evd } = setUp();
    let count = 0;
    evd.postSe(0);
    const loop = (async () => {
      for await (const batch of evd) {
        count += batch.length;
        if (count === 1000) return;
        evd.postSe(count);
      }
    })();
    for (const most of [255, 511, 767, 1000]) {
      for (let i = 0; i < 300; i++) await settle();
      assert.equal(count, most);
      host.advance(0);
    }
    await loop;
    assert.equal(host.kept, 0);
  });

  it('one that may not wait never does', async () => {
    const { evd } = setUp();
    for (let i = 0; i < 600; i++) {
      evd.postSe(i);
      assert.equal(label((await evd.wait({ timeoutMs: 0 })).event), i);
    }
  });

  async function atTheTurn(): Promise<{ host: FakeHost; evd: Evd }> {
    const { host, evd } = setUp();
    for (let i = 1; i < 256; i++) {
      evd.postSe(i);
      await evd.wait();
    }
    return { host, evd };
  }

  it('goes on when what waited has been taken by then, armed for what comes', async () => {
    const { host, evd } = await atTheTurn();
    const { context } = host.endpoint();
    evd.postSe('taken');
    const waiting = evd.wait();
    assert.deepEqual(drain(evd), ['taken']);
    host.advance(0);
    assert.equal(evd.query().taker, 'waiter');
    host.cq.add({ context, cookie: 1 });
    host.run();
    assert.equal(label((await waiting).event), 1);
  });

  it('goes on when the endpoint of what waited is gone by then', async () => {
    const { host, evd } = await atTheTurn();
    const { context } = host.endpoint();
    host.cq.add({ context, cookie: 1 });
    evd.feed.scan();
    const waiting = evd.wait();
    host.owners.free(context);
    host.advance(0);
    assert.equal(evd.query().taker, 'waiter');
    evd.postSe('next');
    host.run();
    assert.equal(label((await waiting).event), 'next');
  });

  it('is over when it has been ended by then: a later waiter is not served for it', async () => {
    const { host, evd } = await atTheTurn();
    const stop = new AbortController();
    evd.postSe(1);
    const first = evd.wait({ signal: stop.signal });
    stop.abort();
    await assert.rejects(first, dat('DAT_INTERRUPTED_CALL'));
    let woken = false;
    const second = evd.wait({ threshold: 2 }).then(() => (woken = true));
    host.advance(0);
    await settle();
    assert.equal(woken, false);
    evd.postSe(2);
    host.run();
    await second;
  });
});

describe('evd: a wait whose time is up', () => {
  it('takes what has come by then and not been notified', async () => {
    const { host, evd } = setUp();
    const { context } = host.endpoint();
    const waiting = evd.wait({ timeoutMs: 5 });
    host.cq.armed = 'none';
    host.cq.add({ context, cookie: 1 });
    host.advance(5);
    assert.equal(label((await waiting).event), 1);
    assert.deepEqual([host.kept, evd.query().taker], [0, 'none']);
  });

  it('ends although the endpoint of what waits is gone, and the EVD is free again', async () => {
    const { host, evd } = setUp();
    const { context } = host.endpoint();
    const waiting = evd.wait({ timeoutMs: 5 });
    host.cq.armed = 'none';
    host.cq.add({ context, cookie: 1 });
    evd.feed.scan();
    host.owners.free(context);
    host.nowUs = 5000;
    for (const timer of host.active) timer.expire(host.nowUs);
    await assert.rejects(waiting, dat('DAT_TIMEOUT_EXPIRED'));
    assert.deepEqual([host.kept, evd.query().taker], [0, 'none']);
  });

  it('says with 0 ms what waits, and takes none of it', async () => {
    const { host, evd } = setUp();
    evd.postSe(1);
    await assert.rejects(evd.wait({ threshold: 2, timeoutMs: 0 }), (error: { value: unknown }) => {
      assert.ok(dat('DAT_TIMEOUT_EXPIRED')(error));
      assert.deepEqual(error.value, { timeoutMs: 0, nmore: 1 });
      return true;
    });
    assert.deepEqual([host.kept, host.active.size, evd.query().taker], [0, 0, 'none']);
    assert.equal((await evd.wait({ threshold: 1, timeoutMs: Infinity })).nmore, 0);
  });
});
