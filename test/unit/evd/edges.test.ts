/** Edges of an EVD: what is gone when it is taken, what has been told before, what is seen late. */
import assert from 'node:assert/strict';
import {
  Cno,
  DatEventNumber,
  Evd,
  EvdFlags,
  EventBatch,
  type Upcall,
} from '../../../core/evd/index.js';
import { WcStatus } from '../../../core/spi/index.js';
import { unhandledErrors } from '../../support/unhandled-errors.js';
import { scene, watch } from './cno-scene.js';
import { FakeHost, label, settle } from './fake-host.js';
import { connection, drain, setUp, watchErrors } from './set-up.js';

const { BROKEN, ASYNC_EP_BROKEN } = DatEventNumber;

describe('evd: a completion whose endpoint is gone when it is taken', () => {
  /** Notified of one that is gone by the turn that would hand it over. */
  function vanish(host: FakeHost, evd: Evd): void {
    const { context } = host.endpoint();
    host.cq.add({ context, cookie: 1 });
    assert.equal(evd.feed.scan(), 1);
    host.owners.free(context);
    host.run();
  }

  it('leaves a waiter waiting, and it is served next', async () => {
    const { host, evd } = setUp();
    const waiting = watch(evd.wait());
    vanish(host, evd);
    assert.deepEqual([await waiting.now(), evd.query().taker], ['pending', 'waiter']);
    evd.postSe('next');
    host.run();
    assert.notEqual(await waiting.now(), 'pending');
    assert.deepEqual([host.kept, evd.query().dropped], [0, 1]);
  });

  it('leaves an iteration waiting, and it is served next', async () => {
    const { host, evd } = setUp();
    const next = evd[Symbol.asyncIterator]().next();
    vanish(host, evd);
    evd.postSe('next');
    host.run();
    assert.deepEqual((await next).value?.map(label), ['next']);
  });

  it('starts no upcall, and gives a subscriber nothing', () => {
    for (const isUpcall of [true, false]) {
      const { host, evd } = setUp();
      const got: unknown[] = [];
      const take = (event: unknown): void => void got.push(label(event as never));
      if (isUpcall) evd.modifyUpcall('ONE', take);
      else evd.events$.subscribe(take);
      vanish(host, evd);
      assert.deepEqual(got, []);
      evd.postSe('next');
      host.run();
      assert.deepEqual(got, ['next']);
    }
  });
});

describe('evd: completions that nothing has looked at', () => {
  it('are found by a wait that only looks', async () => {
    const { host, evd } = setUp();
    host.cq.add({ context: host.endpoint().context, cookie: 1 });
    assert.equal(label((await evd.wait({ timeoutMs: 0 })).event), 1);
  });

  it('are what `keep` keeps: the next event starts the upcall', () => {
    const { host, evd } = setUp();
    const { context } = host.endpoint();
    host.cq.add({ context, cookie: 1 });
    const got: unknown[] = [];
    evd.modifyUpcall('ONE', (event) => void got.push(label(event)), { pending: 'keep' });
    host.run();
    assert.deepEqual(got, []);
    host.cq.add({ context, cookie: 2 });
    host.run();
    assert.deepEqual(got, [1, 2]);
  });

  it('that are silent start no upcall of an EVD made with one', () => {
    const got: unknown[] = [];
    const handler = (event: unknown): void => void got.push(label(event as never));
    const { host, evd } = setUp({ policy: 'ONE', handler });
    evd.feed.attach('NOTIFY');
    const ep = host.endpoint();
    ep.silent.add(1);
    host.cq.add({ context: ep.context, cookie: 1 });
    assert.equal(evd.query().pending, 1);
    host.run();
    assert.deepEqual(got, []);
  });

  it('wake a SOLICITED EVD of a device that does not speak of flags at all', () => {
    const host = new FakeHost();
    Reflect.deleteProperty(host.device.attributes, 'reportsSolicited');
    const evd = new Evd(host, { id: 1, qlen: 8 });
    evd.feed.attach('SOLICITED');
    const got: unknown[] = [];
    evd.modifyUpcall('ONE', (event) => void got.push(label(event)));
    host.cq.add({ context: host.endpoint().context, cookie: 1 });
    host.cq.fire();
    host.run();
    assert.deepEqual(got, [1]);
  });

  it('and come as a SOLICITED EVD is armed are heard: one may be solicited', () => {
    const { host, evd } = setUp();
    const { context } = host.endpoint();
    evd.feed.attach('SOLICITED');
    host.cq.beforeArm = () => {
      host.cq.beforeArm = () => undefined;
      host.cq.add({ context, cookie: 1 });
    };
    const got: unknown[] = [];
    evd.modifyUpcall('ONE', (event) => void got.push(label(event)));
    host.run();
    assert.deepEqual(got, [1]);
  });

  it('are no longer those of a freed EVD', async () => {
    const { host, evd } = setUp();
    const { context } = host.endpoint();
    host.cq.add({ context, cookie: 1 });
    evd.feed.scan();
    assert.equal(evd.feed.left(context), 1);
    await evd.free();
    let polls = 0;
    host.cq.poll = () => ++polls;
    evd.feed.purge(context);
    assert.deepEqual([evd.feed.left(context), evd.feed.scan(), polls], [0, 0, 0]);
  });

  it('are lost to a subscriber that frees the EVD', () => {
    const { host, evd } = setUp();
    const { context } = host.endpoint();
    const got: unknown[] = [];
    evd.events$.subscribe({
      next: (event) => {
        got.push(label(event));
        void evd.free();
      },
      complete: () => got.push('complete'),
    });
    for (const cookie of [1, 2, 3]) host.cq.add({ context, cookie });
    host.run();
    assert.deepEqual([got, host.async, host.kept], [[1, 'complete'], [], 0]);
  });
});

describe('evd: what has been told before', () => {
  it('is told to another CNO that is named', async () => {
    const { host, cno, a } = scene();
    a.postSe(1);
    host.run();
    assert.equal(await cno.wait(), a);
    const other = new Cno(host, { id: 9 });
    a.modifyCno(other);
    host.run();
    assert.deepEqual([other.query().state, cno.query().state], ['TRIGGERED', 'UNTRIGGERED']);
  });

  it('is not the failure of an agent, where there is none', () => {
    const { host, cno, a } = scene();
    a.postSe(1);
    host.run();
    assert.deepEqual([cno.query().state, host.async], ['TRIGGERED', []]);
  });

  it('by one CNO leaves its hint when others go', async () => {
    const { host, cno, a, dto } = scene();
    dto.postSe(1);
    host.run();
    await a.free();
    assert.equal(await cno.wait(), dto);
  });

  it('is gone from the handle of a CNO that has ended', () => {
    const { host, cno, a } = scene();
    const { handle } = cno;
    a.postSe(1);
    host.run();
    assert.equal(handle.readable, true);
    cno.close();
    assert.deepEqual([handle.readable, handle.take()], [false, undefined]);
    cno.notify(a);
    assert.equal(Atomics.load(handle.word, 0), 1, 'what comes later is not counted');
  });
});

describe('cno: the word of its handle', () => {
  type Outcome = { readonly value: Promise<string> | string };
  const waitAsync = Reflect.get(Atomics, 'waitAsync') as (
    word: Int32Array,
    index: number,
    value: number,
    timeoutMs: number,
  ) => Outcome;

  for (const how of ['a trigger', 'the end'] as const) {
    it(`wakes what waits for it at ${how}`, async () => {
      const { host, cno, a } = scene();
      const { value } = waitAsync(cno.handle.word, 0, 0, 2000);
      if (how === 'the end') cno.close();
      else a.postSe(1);
      host.run();
      assert.equal(await value, 'ok');
    });
  }
});

describe('evd: takers and calls side by side', () => {
  it('a loop is a reason to live while its body runs, too', async () => {
    const { host, evd } = setUp();
    evd.postSe(1);
    for await (const batch of evd) {
      assert.deepEqual([batch.length, host.kept], [1, 1]);
      break;
    }
    assert.equal(host.kept, 0);
  });

  it('a batch that a loop has left is whole although the EVD has been freed since', async () => {
    const { evd } = setUp();
    for (const payload of [0, 1]) evd.postSe(payload);
    let last: readonly unknown[] = [];
    for await (const batch of evd) {
      last = batch;
      break;
    }
    await evd.free();
    assert.equal(last.length, 2);
  });

  it('the asynchronous part of a handler may change the policy', async () => {
    const { host, evd } = setUp();
    const policies: string[] = [];
    evd.modifyUpcall('MANY', async () => {
      await new Promise((resolve) => setImmediate(resolve));
      evd.modifyUpcall('DISABLE');
      policies.push(evd.query().policy);
    });
    evd.postSe(1);
    host.run();
    await evd.drainUpcalls();
    assert.deepEqual([policies, host.async], [['DISABLE'], []]);
  });

  it('a turn that fails does not forget what has come in it', () => {
    const { host, evd } = setUp();
    const { context } = host.endpoint();
    const cno = new Cno(host, { id: 1 });
    let calls = 0;
    const agent = (): void => {
      if (++calls === 2) return;
      drain(evd);
      cno.modifyAgent(agent);
      evd.postSe('in the turn');
      host.cq.beforePoll = () => {
        host.cq.beforePoll = () => undefined;
        throw new Error('unreadable');
      };
    };
    cno.modifyAgent(agent);
    evd.modifyCno(cno);
    host.cq.add({ context, cookie: 1 });
    host.run();
    assert.deepEqual([calls, host.async.length], [2, 1]);
    assert.deepEqual(drain(evd), ['in the turn']);
  });

  it('a handler may be changed while something else takes the events', async () => {
    const { host, evd } = setUp();
    const waiting = evd.wait();
    const got: unknown[] = [];
    evd.modifyUpcall('DISABLE', (event) => void got.push(label(event)));
    evd.postSe(1);
    host.run();
    await waiting;
    evd.modifyUpcall('ONE');
    evd.postSe(2);
    host.run();
    assert.deepEqual(got, [2]);
  });

  it('a batch that has events does not drive the device, nor take twice', () => {
    const { host, evd } = setUp({ polling: 'spin' });
    for (const payload of [1, 2, 3]) evd.postSe(payload);
    const batch = new EventBatch(2);
    assert.deepEqual([evd.dequeueInto(batch), batch.count, host.progressed], [2, 2, 0]);
    assert.deepEqual([label(batch.events[0]), label(batch.events[1])], [1, 2]);
    assert.deepEqual(drain(evd), [3]);
  });

  it('a wait for more than one that takes a turn needs them all by then', async () => {
    const { host, evd } = setUp();
    for (let i = 1; i < 256; i++) {
      evd.postSe(i);
      await evd.wait();
    }
    for (const payload of [1, 2]) evd.postSe(payload);
    const waiting = watch(evd.wait({ threshold: 2 }));
    assert.equal(label(evd.dequeue()), 1);
    host.advance(0);
    assert.equal(await waiting.now(), 'pending');
    evd.postSe(3);
    host.run();
    assert.notEqual(await waiting.now(), 'pending');
    assert.deepEqual(drain(evd), [3]);
  });

  it('each poll looks at a source of errors, however few there are', () => {
    const { host, evd } = setUp({ streams: EvdFlags.DTO });
    const connect = new Evd(host, { id: 8, qlen: 4, streams: EvdFlags.CONNECTION });
    const ep = host.endpoint();
    ep.onEach = () => connect.feed.post(connection(BROKEN));
    watchErrors(connect, evd);
    for (let i = 0; i < 4; i++) {
      host.cq.add({ context: ep.context, cookie: i, status: WcStatus.RETRY_EXC_ERR });
      assert.equal(label(connect.dequeue()), BROKEN, `poll ${i}`);
    }
  });

  it('a CNO and a subscriber watch for errors once, and no more when both have gone', () => {
    const { host, evd } = setUp({ streams: EvdFlags.DTO });
    const cno = new Cno(host, { id: 1 });
    const connect = new Evd(host, { id: 8, qlen: 4, streams: EvdFlags.CONNECTION });
    watchErrors(connect, evd);
    const ep = host.endpoint();
    const fail = (): void => {
      host.cq.add({ context: ep.context, status: WcStatus.RETRY_EXC_ERR });
      host.run();
    };
    connect.modifyCno(cno);
    const subscription = connect.events$.subscribe();
    fail();
    subscription.unsubscribe();
    fail();
    assert.equal(ep.seen.length, 2, 'the CNO is there');
    connect.modifyCno(null);
    fail();
    fail();
    assert.equal(ep.seen.length, 2);
  });

  it('room is reserved on top of what has been', () => {
    const { host, evd } = setUp({ qlen: 8 });
    evd.feed.reserve(4);
    assert.equal(host.cq.ring.entries, 16);
    evd.feed.reserve(5);
    assert.equal(host.cq.ring.entries, 32);
  });

  it('an error that is none is wrapped where the program would hear of it', async () => {
    const [error, ...others] = await unhandledErrors(async () => {
      const host = new FakeHost();
      const handler = (): never => {
        // eslint-disable-next-line @typescript-eslint/only-throw-error -- consumers do
        throw 'a text';
      };
      const evd = new Evd(host, {
        id: 1,
        qlen: 8,
        streams: EvdFlags.ASYNC,
        policy: 'ONE',
        handler,
      });
      const number = ASYNC_EP_BROKEN;
      evd.feed.post({ type: 'async-error', number, object: evd, reason: 0, message: 'x' });
      host.run();
      await settle();
    });
    assert.ok(error instanceof Error);
    assert.deepEqual([error.message, error.cause, others], ['a text', 'a text', []]);
  });
});

describe('evd: the close of its adapter', () => {
  function busy() {
    const { host, evd } = setUp();
    const ends: (() => void)[] = [];
    const upcalls: Upcall[] = [];
    evd.modifyUpcall('MANY', (_event, upcall) => {
      upcalls.push(upcall);
      return new Promise((resolve) => ends.push(resolve));
    });
    for (const payload of [1, 2]) evd.postSe(payload);
    host.run();
    const [first = assert.fail(), second = assert.fail()] = upcalls;
    return { host, evd, ends, first, second };
  }

  it('frees it at once, and waits for the upcalls that do not wait for the close', async () => {
    const { host, evd, ends, first } = busy();
    const closed = watch(evd.end(new Set([first])));
    assert.deepEqual([evd.isFreed, host.freed], [true, [evd]]);
    assert.equal(await closed.now(), 'pending');
    ends[1]?.();
    assert.deepEqual(await closed.now(), { value: undefined });
  });

  it('does not wait for one that joins it', async () => {
    const { evd, first, second } = busy();
    const closed = watch(evd.end(new Set([first])));
    evd.joinEnd(second);
    assert.deepEqual(await closed.now(), { value: undefined });
  });

  it('of an EVD that has been freed only waits', async () => {
    const { host, evd, ends } = busy();
    void evd.free();
    const closed = watch(evd.end(new Set()));
    assert.equal(await closed.now(), 'pending');
    for (const end of ends) end();
    assert.deepEqual(await closed.now(), { value: undefined });
    assert.equal(host.freed.length, 1);
  });
});
