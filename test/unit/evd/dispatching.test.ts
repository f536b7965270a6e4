/** What makes the dispatcher run, what it arms for, what it leaves alone once it is closed. */
import assert from 'node:assert/strict';
import { Cno, DatEventNumber, Evd, EvdFlags } from '../../../core/evd/index.js';
import { WcFlags, WcStatus } from '../../../core/spi/index.js';
import { unhandledErrors } from '../../support/unhandled-errors.js';
import { watch } from './cno-scene.js';
import { FakeHost, label, settle } from './fake-host.js';
import { connection, dat, drain, setUp, watchErrors } from './set-up.js';

const { BROKEN, ASYNC_EP_BROKEN, ASYNC_EVD_OVERFLOW } = DatEventNumber;

function withUpcalls(configuration?: 'NOTIFY' | 'SOLICITED') {
  const { host, evd } = setUp();
  if (configuration !== undefined) evd.feed.attach(configuration);
  const ep = host.endpoint();
  const got: unknown[] = [];
  evd.modifyUpcall('ONE', (event) => void got.push(label(event)));
  const complete = (cookie: number, flags = 0): void => {
    host.cq.add({ context: ep.context, cookie, flags });
  };
  return { host, evd, ep, got, complete };
}

describe('evd: turns of the dispatcher', () => {
  it('however much comes, one is due; then none, until more comes', () => {
    const { host, evd, got } = withUpcalls();
    host.run();
    for (const payload of [1, 2, 3]) {
      evd.postSe(payload);
      assert.equal(host.tasks.length, 1);
    }
    host.tasks.shift()?.();
    assert.deepEqual([got, host.tasks.length], [[1, 2, 3], 0]);
    evd.postSe(4);
    assert.equal(host.tasks.length, 1);
    host.run();
    assert.deepEqual(got, [1, 2, 3, 4]);
  });

  it('events that nothing takes make none due', () => {
    const { host, evd } = setUp();
    evd.postSe(1);
    assert.equal(host.tasks.length, 0);
  });

  it('after a dequeue nothing calls for an upcall: a silent completion starts none', () => {
    const { host, evd, ep, got, complete } = withUpcalls('NOTIFY');
    ep.silent.add(1).add(2);
    evd.postSe('dequeued');
    assert.deepEqual(drain(evd), ['dequeued']);
    host.run();
    complete(1);
    host.run();
    assert.deepEqual(got, []);
    assert.equal(evd.query().pending, 1);
    complete(3);
    host.run();
    assert.deepEqual(got, [1, 3], 'the next that notifies takes it along');
  });

  it('nor does one wake a waiter', async () => {
    const { host, evd } = setUp();
    const ep = host.endpoint();
    evd.feed.attach('NOTIFY');
    ep.silent.add(1);
    const waiting = watch(evd.wait());
    evd.postSe('dequeued');
    assert.deepEqual(drain(evd), ['dequeued']);
    host.run();
    host.cq.add({ context: ep.context, cookie: 1 });
    host.run();
    assert.equal(await waiting.now(), 'pending');
    host.cq.add({ context: ep.context, cookie: 2 });
    host.run();
    assert.notEqual(await waiting.now(), 'pending');
    assert.deepEqual(drain(evd), [2]);
  });
});

describe('evd: what the completion queue is armed for', () => {
  it('a CNO that is named later is told of the next completion', async () => {
    const { host, evd } = setUp();
    const { context } = host.endpoint();
    const cno = new Cno(host, { id: 1 });
    evd.modifyCno(cno);
    assert.equal(host.cq.armed, 'next');
    host.cq.add({ context, cookie: 1 });
    host.run();
    assert.equal(await cno.wait(), evd);
  });

  it('so is it when a taker leaves it the EVD', async () => {
    const { host, evd } = setUp();
    const { context } = host.endpoint();
    const cno = new Cno(host, { id: 1 });
    evd.disable();
    evd.modifyCno(cno);
    evd.modifyUpcall('ONE', () => undefined);
    evd.modifyUpcall('DISABLE');
    assert.equal(host.cq.armed, 'none');
    evd.enable();
    assert.equal(host.cq.armed, 'next');
    host.cq.add({ context, cookie: 1 });
    host.run();
    assert.equal(await cno.wait(), evd);
  });

  it('a change of configuration arms for what it notifies of', () => {
    const { host, evd } = setUp();
    const end = evd.feed.attach('SOLICITED');
    evd.modifyUpcall('ONE', () => undefined);
    assert.equal(host.cq.armed, 'solicited');
    end();
    assert.equal(host.cq.armed, 'next', 'it is THRESHOLD again');
  });

  it('what a device without flags notifies of counts as solicited, and what came before', () => {
    const { host, evd, got, complete } = withUpcalls('SOLICITED');
    complete(1);
    assert.equal(evd.query().pending, 1, 'it has been seen');
    host.run();
    assert.deepEqual(got, []);
    complete(2);
    host.cq.fire();
    host.run();
    assert.deepEqual(got, [1, 2]);
    complete(3);
    host.run();
    assert.deepEqual(got, [1, 2]);
    assert.equal(evd.query().pending, 1);
    host.cq.fire();
    host.run();
    assert.deepEqual(got, [1, 2, 3], 'seen before it was notified of');
    host.cq.fire();
    host.run();
    assert.deepEqual(got, [1, 2, 3]);
  });

  it('of a device with flags, a notification without a solicited completion is none', () => {
    const host = new FakeHost();
    host.device.attributes.reportsSolicited = true;
    const evd = new Evd(host, { id: 1, qlen: 8 });
    evd.feed.attach('SOLICITED');
    const { context } = host.endpoint();
    const got: unknown[] = [];
    evd.modifyUpcall('ONE', (event) => void got.push(label(event)));
    host.cq.add({ context, cookie: 1 });
    host.cq.fire();
    host.run();
    assert.deepEqual(got, []);
    host.cq.add({ context, cookie: 2, flags: WcFlags.SOLICITED });
    host.run();
    assert.deepEqual(got, [1, 2]);
  });
});

describe('evd: the dispatcher of a freed EVD', () => {
  /** What is under way when the EVD is freed. */
  const underWay: Readonly<Record<string, (evd: Evd, host: FakeHost) => void>> = {
    'events of an upcall': (evd) => {
      evd.modifyUpcall('ONE', () => assert.fail('the EVD has been freed'));
      evd.postSe(1);
    },
    'a subscriber and a CNO': (evd, host) => {
      evd.modifyCno(new Cno(host, { id: 1 }));
      evd.postSe(1);
      evd.events$.subscribe(() => assert.fail('the EVD has been freed'));
    },
    'an iteration and a CNO': (evd, host) => {
      evd.modifyCno(new Cno(host, { id: 1 }));
      void evd[Symbol.asyncIterator]().next();
    },
    'a hold': (evd, host) => {
      evd.feed.hold();
      host.cq.fire();
    },
    'a watch for failures': (evd, host) => {
      evd.feed.watchFailures();
      host.cq.fire();
    },
    'a notification for a waiter': (evd, host) => {
      void evd.wait().catch(() => undefined);
      host.cq.fire();
    },
    'a source of errors of another EVD': (evd, host) => {
      const connect = new Evd(host, { id: 8, qlen: 4, streams: EvdFlags.CONNECTION });
      watchErrors(connect, evd);
      connect.events$.subscribe();
      host.cq.fire();
    },
  };
  for (const [what, begin] of Object.entries(underWay)) {
    it(`leaves its completion queue alone: ${what}`, async () => {
      const { host, evd } = setUp();
      begin(evd, host);
      const { arms } = host.cq;
      await evd.free();
      host.run();
      await settle();
      host.run();
      assert.deepEqual([host.async, host.cq.arms, host.tasks.length], [[], arms, 0]);
    });
  }

  it('has nothing more to do when it is freed in the middle of a turn', async () => {
    const { host, evd } = setUp();
    const { context } = host.endpoint();
    const got: unknown[] = [];
    evd.modifyUpcall('MANY', (event) => {
      got.push(label(event));
      evd.postSe('again');
      void evd.free();
    });
    for (const cookie of [1, 2]) host.cq.add({ context, cookie });
    host.run();
    await settle();
    host.run();
    assert.deepEqual([got, host.async], [[1], []]);
  });

  it('leaves another EVD’s sources alone that are freed, and watches them no more', async () => {
    const { host, evd } = setUp({ streams: EvdFlags.DTO });
    const connect = new Evd(host, { id: 8, qlen: 4, streams: EvdFlags.CONNECTION });
    const end = watchErrors(connect, evd);
    await evd.free();
    assert.equal(connect.dequeue(), undefined);
    connect.events$.subscribe().unsubscribe();
    end();
    assert.deepEqual(host.async, []);
  });

  it('is no reason to live, whatever was asked of it before', async () => {
    const { host, evd } = setUp();
    evd.modifyUpcall('ONE', () => undefined);
    assert.equal(host.kept, 1);
    await evd.free();
    assert.equal(host.kept, 0);
  });
});

describe('evd: a source of errors', () => {
  it('is told when nothing takes events yet, and of each change once', () => {
    const { host, evd } = setUp({ streams: EvdFlags.DTO });
    const connect = new Evd(host, { id: 8, qlen: 4, streams: EvdFlags.CONNECTION });
    const end = watchErrors(connect, evd);
    assert.equal(host.cq.armed, 'none');
    end();
    const ends = [evd.feed.watchFailures(), watchErrors(connect, evd)];
    const seen = host.endpoint();
    const fail = (): void => {
      host.cq.add({ context: seen.context, status: WcStatus.RETRY_EXC_ERR });
      host.run();
    };
    ends[1]?.();
    fail();
    fail();
    assert.equal(seen.seen.length, 2, 'the watch of its own stays');
    ends[0]?.();
    fail();
    fail();
    assert.equal(seen.seen.length, 2);
  });

  it('twice removed is removed once, also of an EVD that is its own', () => {
    const { host, evd } = setUp();
    evd.feed.addErrorSource(evd.feed);
    const subscription = evd.events$.subscribe();
    evd.feed.removeErrorSource(evd.feed);
    subscription.unsubscribe();
    const ep = host.endpoint();
    const end = evd.feed.watchFailures();
    host.cq.armed = 'none';
    host.cq.add({ context: ep.context, status: WcStatus.RETRY_EXC_ERR });
    end();
    assert.deepEqual(ep.seen, []);
    const connect = new Evd(host, { id: 8, qlen: 4, streams: EvdFlags.CONNECTION });
    connect.events$.subscribe();
    connect.feed.removeErrorSource(evd.feed);
    connect.feed.addErrorSource(evd.feed);
    host.cq.fire();
    host.run();
    assert.equal(host.cq.armed, 'solicited');
  });
});

describe('evd: the asynchronous one', () => {
  it('whose handler fails as it is told of that makes it an unhandled error, once', async () => {
    const cause = new Error('always');
    const errors = await unhandledErrors(async () => {
      const host = new FakeHost();
      const handler = (): void => {
        throw cause;
      };
      const evd = new Evd(host, {
        id: 1,
        qlen: 8,
        streams: EvdFlags.ASYNC,
        policy: 'ONE',
        handler,
      });
      host.reportAsync = (event) => void evd.feed.post(event);
      const object = new Evd(host, { id: 2, qlen: 1 });
      evd.feed.post({
        type: 'async-error',
        number: ASYNC_EP_BROKEN,
        object,
        reason: 0,
        message: 'x',
      });
      host.run();
      await settle();
    });
    assert.deepEqual(errors, [cause]);
  });

  it('a handler of another EVD that fails at its own error is reported', () => {
    const { host, evd } = setUp();
    evd.modifyUpcall('ONE', () => {
      throw new Error('it fails');
    });
    evd.postSe({ type: 'async-error', object: evd });
    evd.feed.post(connection(BROKEN));
    host.run();
    assert.equal(host.async.length, 2);
  });

  it('an event is lost when the queue is full of software events: that is told', () => {
    const { host, evd } = setUp({ qlen: 1 });
    evd.postSe(1);
    assert.equal(evd.feed.post(connection(BROKEN)), false);
    assert.deepEqual(
      host.async.map(({ number }) => number),
      [ASYNC_EVD_OVERFLOW],
    );
  });
});

describe('evd: bad calls that a check must see', () => {
  it('signals, times and flags of other types are refused, and nothing waits', async () => {
    const { host, evd } = setUp();
    const arg2 = dat('DAT_INVALID_PARAMETER', 'DAT_INVALID_ARG2');
    await assert.rejects(evd.wait({ signal: {} as AbortSignal }), arg2);
    await assert.rejects(evd.wait({ timeoutMs: '5' as unknown as number }), arg2);
    for (const options of [null, 5, 'x'] as unknown as object[]) {
      await assert.rejects(evd.wait(options), arg2);
    }
    const arg4 = dat('DAT_INVALID_PARAMETER', 'DAT_INVALID_ARG4');
    for (const streams of [0x2, 0xe, 0x12, 0x1e0 | 0x4]) {
      assert.throws(() => new Evd(host, { id: 1, qlen: 8, streams }), arg4);
    }
    assert.deepEqual([host.kept, evd.query().taker, host.cqs.length], [0, 'none', 1]);
  });
});
