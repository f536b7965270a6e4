/** The producers' side: what feeds an EVD, what it makes room for, and where failures are told. */
import assert from 'node:assert/strict';
import { AsyncErrorReason, Cno, DatEventNumber, Evd, EvdFlags } from '../../../core/evd/index.js';
import { AsyncEventType, SpiError, WcStatus } from '../../../core/spi/index.js';
import type { FakeCq } from './fake-cq.js';
import { FakeHost, settle } from './fake-host.js';
import { connection, dat, drain, setUp, watchErrors } from './set-up.js';

const { ASYNC_EVD_OVERFLOW, ASYNC_PROVIDER_INTERNAL_ERROR, BROKEN, ESTABLISHED } = DatEventNumber;

describe('evd: room for completions that the consumer does not count', () => {
  it('is made when it is reserved, once, and given back once', () => {
    const { host, evd } = setUp({ qlen: 8 });
    const { cq } = host;
    const ends = [evd.feed.reserve(4), evd.feed.reserve(4)];
    assert.equal(cq.ring.entries, 16);
    const { ring } = cq;
    ends.push(evd.feed.reserve(0));
    assert.equal(cq.ring, ring, 'there is room: the ring stays');
    ends[0]?.();
    ends[0]?.();
    evd.resize(14);
    assert.equal(cq.ring.entries, 32, '14 and the 4 of the other');
    for (const end of ends) end();
    evd.resize(16);
    assert.equal(cq.ring.entries, 16);
  });

  it('leaves the events that wait, and what waits armed although the device forgets', async () => {
    for (const enlarge of [(evd: Evd) => void evd.feed.reserve(9), (evd: Evd) => evd.resize(32)]) {
      const { host, evd } = setUp({ qlen: 8 });
      const { context } = host.endpoint();
      const waiting = evd.wait({ threshold: 3 });
      const { cq } = host;
      const resize = cq.resize.bind(cq);
      cq.resize = (entries) => {
        resize(entries);
        cq.armed = 'none';
      };
      host.cq.add({ context, cookie: 1 });
      host.run();
      enlarge(evd);
      assert.equal(host.cq.armed, 'next');
      for (const cookie of [2, 3]) host.cq.add({ context, cookie });
      host.run();
      assert.equal((await waiting).nmore, 2);
    }
  });

  it('is what the completions scanned and not taken are moved to', () => {
    const { host, evd } = setUp({ qlen: 4 });
    const { context } = host.endpoint();
    for (const cookie of [1, 2, 3]) host.cq.add({ context, cookie });
    evd.feed.scan();
    evd.feed.reserve(8);
    for (let cookie = 4; cookie <= 12; cookie++) host.cq.add({ context, cookie });
    assert.deepEqual(drain(evd), [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]);
  });

  it('needs no completion queue: an EVD without one takes it as it is', () => {
    const { host, evd } = setUp({ streams: EvdFlags.CONNECTION });
    evd.feed.reserve(100)();
    assert.equal(host.cqs.length, 0);
  });

  it('that the device does not have is not counted', () => {
    const { host, evd } = setUp({ qlen: 8 });
    const { cq } = host;
    const resize = cq.resize.bind(cq);
    cq.resize = () => {
      throw new SpiError('ENOMEM', 'no memory');
    };
    assert.throws(() => evd.feed.reserve(1000), dat('DAT_INSUFFICIENT_RESOURCES'));
    cq.resize = resize;
    evd.resize(16);
    assert.equal(cq.ring.entries, 16);
  });
});

describe('evd: what goes wrong with the completion queue', () => {
  it('an overrun is told to each listener, with the number of the EVD, and reported', () => {
    const { host, evd } = setUp();
    const told: unknown[] = [];
    const ends: (() => void)[] = [];
    for (const name of ['a', 'b', 'c']) {
      const onOverrun = (id: number): void => {
        told.push([name, id]);
        ends[1]?.();
      };
      ends.push(evd.feed.onOverrun({ onOverrun }));
    }
    host.cq.event(AsyncEventType.CQ_ERR);
    assert.deepEqual(told.splice(0), [
      ['a', 7],
      ['b', 7],
      ['c', 7],
    ]);
    const [{ number, object, reason, message } = assert.fail()] = host.async;
    assert.deepEqual([number, reason], [ASYNC_EVD_OVERFLOW, AsyncErrorReason.EVD.OVERFLOW]);
    assert.equal(object, evd);
    assert.match(message, /^evd 7: the completion queue overran/);
    host.cq.event(AsyncEventType.CQ_ERR);
    assert.deepEqual(told.splice(0), [
      ['a', 7],
      ['c', 7],
    ]);
    for (const end of ends) end();
    host.cq.event(AsyncEventType.CQ_ERR);
    assert.deepEqual([told, host.async.length], [[], 3]);
  });

  it('any other event of it is the provider’s error, and no overrun', () => {
    const { host, evd } = setUp();
    evd.feed.onOverrun({ onOverrun: () => assert.fail('no completion is lost') });
    host.cq.event(AsyncEventType.DEVICE_FATAL);
    assert.equal(host.async.length, 1);
    const [{ number, object, reason, message, ...rest } = assert.fail()] = host.async;
    const { OTHER } = AsyncErrorReason.EVD;
    assert.deepEqual([number, reason], [ASYNC_PROVIDER_INTERNAL_ERROR, OTHER]);
    assert.equal(object, evd);
    assert.equal(message, 'evd 7: DEVICE_FATAL on the completion queue');
    assert.deepEqual(rest, { type: 'async-error' });
  });

  it('a queue that cannot be read is reported by a scan, which finds nothing', () => {
    const { host, evd } = setUp();
    const cause = new Error('unreadable');
    host.cq.beforePoll = () => {
      throw cause;
    };
    assert.equal(evd.feed.scan(), 0);
    assert.deepEqual(
      host.async.map((event) => [event.object === evd, event.cause]),
      [[true, cause]],
    );
    assert.match(host.async[0]?.message ?? '', /cannot be read/);
  });

  it('a queue that cannot be read is reported by the pump, and what waits goes on', async () => {
    const { host, evd } = setUp();
    const { context } = host.endpoint();
    const waiting = evd.wait();
    const cause = new Error('unreadable');
    let failures = 1;
    host.cq.beforePoll = () => {
      if (failures-- > 0) throw cause;
    };
    host.cq.add({ context, cookie: 1 });
    host.run();
    assert.deepEqual(
      host.async.map((event) => event.cause),
      [cause],
    );
    host.cq.add({ context, cookie: 2 });
    evd.postSe('wakes it');
    host.run();
    const { event, nmore } = await waiting;
    assert.ok(event.type === 'dto' && event.cookie === 1);
    assert.equal(nmore, 2);
  });

  it('that the device has none is an error of the adapter’s call', () => {
    for (const [code, type, subtype] of [
      ['ENOMEM', 'DAT_INSUFFICIENT_RESOURCES', 'DAT_RESOURCE_TEVD'],
      ['EIO', 'DAT_INTERNAL_ERROR', undefined],
    ] as const) {
      const host = new FakeHost();
      host.device.createCompletionQueue = () => {
        throw new SpiError(code, 'none left');
      };
      assert.throws(() => new Evd(host, { id: 1, qlen: 8 }), dat(type, subtype));
      const plain = new Evd(host, { id: 1, qlen: 8, streams: EvdFlags.CONNECTION });
      assert.throws(() => plain.feed.cq, /event dispatcher 1 has no completion queue/);
    }
  });

  it('is given back when the rest of a new EVD fails: its polling mode, or a look at it', () => {
    const gone = new Error('the device is gone');
    const fail = (): never => {
      throw gone;
    };
    const refusals: readonly ((cq: FakeCq) => void)[] = [
      (cq) => (cq.setPolling = fail),
      (cq) => (cq.beforePoll = fail),
      (cq) => {
        cq.setPolling = fail;
        cq.destroy = fail;
      },
    ];
    for (const refuse of refusals) {
      const host = new FakeHost();
      const create = host.device.createCompletionQueue;
      host.device.createCompletionQueue = (init) => {
        const cq = create(init);
        refuse(host.cq);
        return cq;
      };
      const cno = new Cno(host, { id: 2 });
      const options = { id: 1, qlen: 8, policy: 'ONE', handler: () => undefined, cno } as const;
      assert.throws(
        () => new Evd(host, options),
        (error) => error === gone,
      );
      assert.equal(host.cq.destroyed, host.cq.destroy !== fail);
      assert.deepEqual([host.kept, cno.query().evds, host.freed], [0, [], []]);
      host.run();
    }
  });
});

describe('evd: failures looked for where nothing takes events', () => {
  /** Fails a completion; whether the endpoint has seen it without a dequeue. */
  function notices({ host, evd }: { host: FakeHost; evd: Evd }): boolean {
    const ep = host.endpoint();
    host.cq.add({ context: ep.context, cookie: 1, status: WcStatus.RETRY_EXC_ERR });
    host.run();
    const isSeen = ep.seen.length > 0;
    drain(evd);
    return isSeen;
  }

  it('watchFailures takes failed completions in until each watch has ended', () => {
    const here = setUp();
    const ends = [here.evd.feed.watchFailures(), here.evd.feed.watchFailures()];
    assert.equal(here.host.cq.armed, 'solicited');
    ends[0]?.();
    ends[0]?.();
    assert.deepEqual([notices(here), notices(here)], [true, true]);
    ends[1]?.();
    notices(here);
    assert.equal(notices(here), false);
  });

  it('watches, holds and users of a freed EVD come and go without a word', async () => {
    const { host, evd } = setUp();
    await evd.free();
    const { arms } = host.cq;
    for (const end of [evd.feed.watchFailures(), evd.feed.hold(), evd.feed.attach('SOLICITED')])
      end();
    evd.feed.purge(1);
    assert.deepEqual(
      [evd.feed.scan(), evd.feed.left(1), host.cq.arms, host.async],
      [0, 0, arms, []],
    );
  });

  it('a watch is counted: of two for one source, each end counts once', () => {
    const here = setUp({ streams: EvdFlags.DTO });
    const connect = new Evd(here.host, { id: 8, qlen: 4, streams: EvdFlags.CONNECTION });
    const subscription = connect.events$.subscribe();
    const ends = [watchErrors(connect, here.evd), watchErrors(connect, here.evd)];
    ends[0]?.();
    assert.deepEqual([notices(here), notices(here)], [true, true]);
    ends[1]?.();
    notices(here);
    assert.equal(notices(here), false);
    watchErrors(connect, here.evd);
    assert.deepEqual([notices(here), notices(here)], [true, true]);
    subscription.unsubscribe();
    notices(here);
    assert.equal(notices(here), false);
  });

  it('an EVD does not watch itself', () => {
    const { host, evd } = setUp();
    const end = watchErrors(evd, evd);
    const subscription = evd.events$.subscribe();
    subscription.unsubscribe();
    end();
    assert.equal(host.cq.arms, 0);
    assert.equal(evd.dequeue(), undefined);
  });

  it('a CNO looks for them as a taker does, until it is taken away or the EVD freed', async () => {
    for (const leave of [(evd: Evd) => evd.modifyCno(null), (evd: Evd) => void evd.free()]) {
      const here = setUp({ streams: EvdFlags.DTO });
      const cno = new Cno(here.host, { id: 1 });
      const options = { qlen: 4, streams: EvdFlags.CONNECTION, cno };
      const connect = new Evd(here.host, { id: 8, ...options });
      watchErrors(connect, here.evd);
      assert.deepEqual([notices(here), notices(here)], [true, true]);
      leave(connect);
      await settle();
      notices(here);
      assert.equal(notices(here), false);
    }
  });

  it('a poll that finds nothing takes in the failures of other queues, of many in turn', () => {
    const host = new FakeHost();
    const connect = new Evd(host, { id: 1, qlen: 64, streams: EvdFlags.CONNECTION });
    const eps = Array.from({ length: 40 }, (_, i) => {
      const source = new Evd(host, { id: 2 + i, qlen: 4, streams: EvdFlags.DTO });
      const ep = host.endpoint();
      ep.onEach = () => connect.feed.post(connection(BROKEN));
      watchErrors(connect, source);
      return ep;
    });
    const fail = (): void => {
      for (const [i, { context }] of eps.entries()) {
        host.cqs[i]?.add({ context, cookie: 1, status: WcStatus.RETRY_EXC_ERR });
      }
    };
    const seen = (): number => eps.filter(({ seen: { length } }) => length > 0).length;
    fail();
    assert.equal(connect.query().pending, 16, 'a poll is of bounded length');
    assert.equal(connect.query().pending, 32);
    assert.deepEqual([connect.query().pending, seen()], [40, 40]);
    assert.equal(drain(connect).length, 40);
    fail();
    for (let polls = 0; polls < 4; polls++) connect.query();
    assert.equal(drain(connect).length, 40, 'round again');
  });

  it('each way to poll finds a failure elsewhere', async () => {
    const polls: Readonly<Record<string, (evd: Evd) => unknown>> = {
      dequeue: (evd) => evd.dequeue()?.number,
      wait: async (evd) => (await evd.wait({ timeoutMs: 0 })).event.number,
      query: (evd) => (evd.query().pending === 1 ? evd.dequeue()?.number : 'none'),
      iterate: async (evd) => {
        for await (const batch of evd) return batch[0]?.number;
        return undefined;
      },
    };
    for (const [how, poll] of Object.entries(polls)) {
      const { host, evd } = setUp({ streams: EvdFlags.DTO });
      const connect = new Evd(host, { id: 8, qlen: 4, streams: EvdFlags.CONNECTION });
      const ep = host.endpoint();
      ep.onEach = () => connect.feed.post(connection(BROKEN));
      watchErrors(connect, evd);
      host.cq.add({ context: ep.context, cookie: 1, status: WcStatus.RETRY_EXC_ERR });
      assert.equal(await poll(connect), BROKEN, how);
    }
  });

  it('what has been dropped from the sources is not looked at any more', () => {
    const { host, evd } = setUp({ streams: EvdFlags.DTO });
    const connect = new Evd(host, { id: 8, qlen: 4, streams: EvdFlags.CONNECTION });
    const ep = host.endpoint();
    watchErrors(connect, evd)();
    host.cq.add({ context: ep.context, cookie: 1, status: WcStatus.RETRY_EXC_ERR });
    assert.equal(connect.dequeue(), undefined);
    assert.deepEqual(ep.seen, []);
  });
});

describe('evd: what others may ask of it', () => {
  it('is heeded once something takes its events, or has asked for them, until it is freed', () => {
    const takers: Readonly<Record<string, (evd: Evd, host: FakeHost) => unknown>> = {
      dequeue: (evd) => evd.dequeue(),
      wait: (evd) => void evd.wait().catch(() => undefined),
      subscription: (evd) => evd.events$.subscribe(),
      upcall: (evd) => evd.modifyUpcall('ONE', () => undefined),
      iterator: (evd) => evd[Symbol.asyncIterator]().next(),
      cno: (evd, host) => evd.modifyCno(new Cno(host, { id: 1 })),
    };
    for (const [name, take] of Object.entries(takers)) {
      const { host, evd } = setUp();
      assert.equal(evd.feed.isHeeded, false);
      take(evd, host);
      assert.equal(evd.feed.isHeeded, true, name);
      void evd.free();
      assert.equal(evd.feed.isHeeded, false, name);
    }
  });

  it('is in use while it has users, full while the next event would be lost', () => {
    const { host, evd } = setUp({ qlen: 2 });
    assert.deepEqual([evd.feed.isInUse, evd.feed.isFull, evd.qlen], [false, false, 2]);
    const end = evd.feed.attach('NOTIFY');
    assert.equal(evd.feed.isInUse, true);
    end();
    assert.equal(evd.feed.isInUse, false);
    evd.postSe(1);
    assert.equal(evd.feed.isFull, false);
    evd.postSe(2);
    assert.equal(evd.feed.isFull, true);
    const { context } = host.endpoint();
    for (const cookie of [1, 2]) host.cq.add({ context, cookie });
    assert.equal(evd.feed.left(context), 0, 'none that has been scanned');
    evd.feed.scan();
    assert.equal(evd.feed.left(context), 2);
  });

  it('tells of each run of lost events, once', () => {
    const { host, evd } = setUp({ qlen: 1 });
    const lose = (): boolean => evd.feed.post(connection(ESTABLISHED));
    assert.deepEqual([lose(), lose(), lose()], [true, false, false]);
    assert.equal(host.async.length, 1);
    const [{ number, reason, message } = assert.fail()] = host.async;
    assert.deepEqual([number, reason], [ASYNC_EVD_OVERFLOW, AsyncErrorReason.EVD.OVERFLOW]);
    assert.equal(message, 'evd 7: more than 1 events wait; the last is lost');
    drain(evd);
    assert.deepEqual([lose(), lose()], [true, false]);
    assert.equal(host.async.length, 2);
    assert.equal(evd.counters().lost, 3);
  });

  it('agrees with plain users on THRESHOLD only, and with none on anything', () => {
    const { evd } = setUp();
    const plain = [evd.feed.attach(), evd.feed.attach()];
    const mode = dat('DAT_INVALID_STATE', 'DAT_INVALID_STATE_EVD_CONFIG_THRESHOLD');
    assert.throws(() => evd.feed.attach('NOTIFY'), mode);
    assert.equal(evd.query().users, 2, 'a user that is refused is none');
    plain[0]?.();
    assert.throws(() => evd.feed.attach('NOTIFY'), mode);
    plain[1]?.();
    const notify = [evd.feed.attach('NOTIFY'), evd.feed.attach('NOTIFY')];
    notify[0]?.();
    assert.throws(() => evd.feed.attach('SOLICITED'), dat('DAT_INVALID_STATE'));
    notify[1]?.();
    evd.feed.attach('SOLICITED')();
    assert.equal(evd.query().users, 0);
  });
});
