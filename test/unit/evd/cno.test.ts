import assert from 'node:assert/strict';
import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import { Cno, Evd } from '../../../core/evd/index.js';
import { codeOf, scene, SOFTWARE, watch } from './cno-scene.js';
import { FakeHost, settle } from './fake-host.js';
import { dat, drain } from './set-up.js';

describe('cno: triggering', () => {
  it('remembers the EVD that fired it, folds further ones in, is taken by wait', async () => {
    const { host, cno, a, b } = scene();
    b.postSe('b');
    a.postSe('a');
    assert.equal(cno.query().state, 'UNTRIGGERED', 'nothing is told inside a call');
    host.run();
    assert.equal(cno.query().state, 'TRIGGERED');
    assert.equal(await cno.wait(), b);
    assert.equal(cno.query().state, 'UNTRIGGERED');
    assert.deepEqual([drain(a), drain(b)], [['a'], ['b']]);
    await assert.rejects(cno.wait({ timeoutMs: 0 }), dat('DAT_QUEUE_EMPTY'));
  });

  it('arms a completion queue, looks once more, and re-arms before it tells', async () => {
    const { host, cno, dto, ep } = scene();
    assert.equal(host.cq.armed, 'next');
    host.cq.beforeArm = () => {
      host.cq.beforeArm = () => undefined;
      host.cq.add({ context: ep.context, cookie: 2 });
    };
    host.cq.add({ context: ep.context, cookie: 1 });
    host.run();
    assert.equal(await cno.wait(), dto);
    assert.equal(host.cq.armed, 'next');
    assert.deepEqual(drain(dto), [1, 2]);
    host.cq.add({ context: ep.context, cookie: 3 });
    host.run();
    assert.equal(await cno.wait(), dto);
  });

  it('does not hear of what a waiter, iteration, subscription or upcall takes', async () => {
    const { host, cno, a } = scene();
    const takers: (() => () => void)[] = [
      () => (void a.wait(), () => undefined),
      () => {
        const iterator = a[Symbol.asyncIterator]();
        void iterator.next().then(({ value }) => value?.at(-1));
        return () => void iterator.return();
      },
      () => {
        const subscription = a.events$.subscribe();
        return () => subscription.unsubscribe();
      },
      () => {
        a.modifyUpcall('ONE', () => undefined);
        return () => a.modifyUpcall('DISABLE');
      },
    ];
    for (const take of takers) {
      const end = take();
      await settle();
      a.postSe(1);
      host.run();
      assert.equal(cno.query().state, 'UNTRIGGERED');
      await settle();
      end();
      host.run();
      assert.equal(cno.query().state, 'UNTRIGGERED');
    }
  });

  it('hears of what a waiter has left when its time is up', async () => {
    const { host, cno, a } = scene();
    const waiting = watch(a.wait({ threshold: 3, timeoutMs: 5 }));
    a.postSe(1);
    host.run();
    assert.equal(cno.query().state, 'UNTRIGGERED');
    host.advance(5);
    assert.equal(await waiting.now(), 'DAT_TIMEOUT_EXPIRED');
    assert.equal(cno.query().state, 'TRIGGERED');
  });

  it('disable holds notifications back, and no more; enable tells of what has come', async () => {
    const { host, cno, a, dto, ep } = scene();
    a.disable();
    dto.disable();
    a.postSe(1);
    host.cq.add({ context: ep.context, cookie: 1 });
    host.run();
    assert.equal(cno.query().state, 'UNTRIGGERED');
    assert.equal((await a.wait()).nmore, 0);
    host.cq.add({ context: ep.context, cookie: 2 });
    assert.equal(host.cq.armed, 'none', 'one stale notification, and no more');
    dto.enable();
    host.run();
    assert.equal(await cno.wait(), dto);
    a.enable();
    host.run();
    assert.equal(cno.query().state, 'UNTRIGGERED');
  });

  it('modifyCno tells the new one of what waits, and takes null', async () => {
    const { host, cno, a } = scene();
    a.modifyCno(null);
    a.postSe(1);
    host.run();
    assert.deepEqual([cno.query().state, a.query().cno], ['UNTRIGGERED', null]);
    const other = new Cno(host, { id: 9 });
    a.modifyCno(other);
    host.run();
    assert.equal(await other.wait(), a);
    assert.deepEqual([a.query().cno, other.query().evds], [other, [a]]);
  });

  it('trigger fires it by hand, without an EVD', async () => {
    const { host, cno, a } = scene();
    assert.equal(cno.trigger(), undefined);
    assert.equal(cno.query().state, 'UNTRIGGERED');
    host.run();
    assert.equal(await cno.wait(), undefined);
    a.postSe(1);
    host.run();
    assert.equal(cno.trigger(), a);
    host.run();
    assert.equal(await cno.wait(), a);
  });
});

describe('cno: wait', () => {
  it('wakes one waiter a notification, in turn', async () => {
    const { host, cno, a, b } = scene();
    const [first, second] = [watch(cno.wait()), watch(cno.wait())];
    assert.deepEqual([host.kept, cno.query().waiters], [1, 2]);
    a.postSe(1);
    host.run();
    assert.deepEqual(await first.now(), { value: a });
    assert.equal(await second.now(), 'pending');
    b.postSe(1);
    host.run();
    assert.deepEqual(await second.now(), { value: b });
    assert.deepEqual([cno.query().state, host.kept], ['UNTRIGGERED', 0]);
  });

  it('ends by its timeout and by a signal, taking nothing', async () => {
    const { host, cno, a } = scene();
    const waiting = watch(cno.wait({ timeoutMs: 5 }));
    host.advance(5);
    assert.equal(await waiting.now(), 'DAT_QUEUE_EMPTY');
    const stop = new AbortController();
    const other = watch(cno.wait({ signal: stop.signal }));
    stop.abort();
    assert.equal(await other.now(), 'DAT_INTERRUPTED_CALL');
    const late = watch(cno.wait({ signal: stop.signal }));
    assert.equal(await late.now(), 'DAT_INTERRUPTED_CALL');
    assert.deepEqual([host.kept, host.active.size, cno.query().waiters], [0, 0, 0]);
    a.postSe(1);
    host.run();
    assert.equal(await cno.wait(), a);
  });

  it('wakes every waiter with undefined when the last EVD has gone', async () => {
    const { host, cno, a, b, dto } = scene();
    const waiters = [watch(cno.wait()), watch(cno.wait())];
    await a.free();
    dto.modifyCno(null);
    assert.equal(await waiters[0]?.now(), 'pending');
    await b.free();
    for (const waiter of waiters) assert.deepEqual(await waiter.now(), { value: undefined });
    assert.equal(host.kept, 0);
  });

  it('names an EVD that is still there when the one that fired has gone', async () => {
    const { host, cno, a, b } = scene();
    a.postSe(1);
    b.postSe(1);
    host.run();
    await a.free();
    assert.equal(await cno.wait(), b);
  });

  it('for await goes on from notification to notification, until the CNO ends', async () => {
    const { host, cno, a, b } = scene();
    const seen: unknown[] = [];
    const loop = (async () => {
      for await (const evd of cno) seen.push(evd);
      seen.push('end');
    })();
    for (const evd of [a, b]) {
      await settle();
      evd.postSe(1);
      host.run();
    }
    await settle();
    cno.close();
    await loop;
    assert.deepEqual(seen, [a, b, 'end']);
  });
});

describe('cno: agent', () => {
  it('is called once, also when a waiter takes the trigger, and not for the next', async () => {
    const host = new FakeHost();
    const calls: unknown[] = [];
    const cno = new Cno(host, { id: 1, agent: (evd) => calls.push(evd) });
    const evd = new Evd(host, { id: 2, qlen: 8, streams: SOFTWARE, cno });
    assert.equal(host.kept, 1, 'an agent is a reason to live');
    const waiting = cno.wait();
    evd.postSe(1);
    assert.deepEqual(calls, []);
    host.run();
    assert.deepEqual([calls, await waiting, cno.query().agent], [[evd], evd, null]);
    evd.postSe(2);
    host.run();
    assert.deepEqual([calls, host.kept], [[evd], 0]);
  });

  it('installed anew, then all EVDs emptied, misses nothing although nobody waits', () => {
    const { host, cno, a, b } = scene();
    const seen: unknown[] = [];
    const agent = (): void => {
      cno.modifyAgent(agent);
      for (const evd of [a, b]) seen.push(...drain(evd));
    };
    cno.modifyAgent(agent);
    for (let i = 0; i < 4; i++) {
      (i % 2 === 0 ? a : b).postSe(i);
      host.run();
    }
    assert.deepEqual(seen, [0, 1, 2, 3]);
    cno.modifyAgent(null);
    a.postSe(4);
    host.run();
    assert.deepEqual([seen.length, host.kept], [4, 0]);
  });

  it('that throws is reported, and harms nobody', async () => {
    const { host, cno, a } = scene();
    const cause = new Error('agent');
    cno.modifyAgent(() => {
      throw cause;
    });
    const waiting = cno.wait();
    a.postSe(1);
    host.run();
    assert.equal(await waiting, a);
    assert.deepEqual([host.async[0]?.cause, host.async[0]?.object], [cause, cno]);
  });
});

describe('cno: other event loops', () => {
  it('handle: readable once until it is taken, with a reference that can be given up', () => {
    const { host, cno, a } = scene();
    const { handle } = cno;
    const seen: unknown[] = [];
    const listener = (evd: unknown): void => void seen.push(evd);
    handle.on('readable', listener);
    assert.deepEqual([host.kept, handle.hasRef()], [1, true]);
    for (const payload of [1, 2]) {
      a.postSe(payload);
      host.run();
    }
    assert.deepEqual([seen, handle.readable], [[a], true]);
    assert.equal(handle.take(), a);
    assert.deepEqual([handle.readable, handle.take()], [false, undefined]);
    a.postSe(3);
    host.run();
    assert.equal(seen.length, 2);
    handle.unref();
    assert.equal(host.kept, 0);
    handle.ref();
    assert.equal(host.kept, 1);
    handle.off('readable', listener);
    assert.equal(host.kept, 0);
  });

  it('handle: is not told of what a waiter has taken', () => {
    const { host, cno, a } = scene();
    let told = 0;
    cno.handle.on('readable', () => told++);
    void cno.wait();
    a.postSe(1);
    host.run();
    assert.deepEqual([told, cno.handle.readable, Atomics.load(cno.handle.word, 0)], [0, false, 1]);
  });

  it('handle: the word wakes the loop of another thread', async () => {
    const { host, cno, a } = scene();
    const { word } = cno.handle;
    const code = `
      const { parentPort, workerData } = require('node:worker_threads');
      parentPort.postMessage('ready');
      parentPort.postMessage(Atomics.wait(workerData, 0, 0));`;
    const thread = new Worker(code, { eval: true, workerData: word });
    await once(thread, 'message');
    a.postSe(1);
    host.run();
    const [woken] = (await once(thread, 'message')) as [string];
    assert.match(woken, /ok|not-equal/);
    await thread.terminate();
  });

  it('notifications$: takes each, one subscriber, completes with the CNO', () => {
    const { host, cno, a, b } = scene();
    const seen: unknown[] = [];
    a.postSe(0);
    host.run();
    const subscription = cno.notifications$.subscribe({
      next: (evd) => seen.push(evd),
      complete: () => seen.push('complete'),
    });
    assert.equal(seen.length, 0, 'not inside the call');
    for (const evd of [b, a]) {
      host.run();
      evd.postSe(1);
    }
    host.run();
    assert.deepEqual(seen, [a, b, a]);
    const refused: unknown[] = [];
    cno.notifications$.subscribe({ error: (error: unknown) => refused.push(codeOf(error)) });
    assert.deepEqual(refused, ['DAT_INVALID_STATE']);
    cno.close();
    host.run();
    assert.deepEqual([seen.pop(), host.kept], ['complete', 0]);
    subscription.unsubscribe();
  });
});

describe('cno: the end', () => {
  it('is refused while there are EVDs or waiters', async () => {
    const { host, cno, a, b, dto } = scene();
    const inUse = dat('DAT_INVALID_STATE', 'DAT_INVALID_STATE_CNO_IN_USE');
    assert.throws(() => cno.free(), inUse);
    for (const evd of [a, b, dto]) evd.modifyCno(null);
    const stop = new AbortController();
    const waiting = watch(cno.wait({ signal: stop.signal }));
    assert.throws(() => cno.free(), inUse);
    stop.abort();
    assert.equal(await waiting.now(), 'DAT_INTERRUPTED_CALL');
    cno.free();
    assert.ok(cno.isFreed && host.freed.includes(cno));
  });

  it('leaves waiters with DAT_INVALID_STATE_CNO_DEAD, and refuses later calls', async () => {
    const { cno, a } = scene();
    const waiting = cno.wait();
    cno.close();
    await assert.rejects(waiting, dat('DAT_INVALID_STATE', 'DAT_INVALID_STATE_CNO_DEAD'));
    const freed = dat('DAT_INVALID_HANDLE', 'DAT_INVALID_HANDLE_CNO');
    for (const call of ['query', 'trigger', 'free'] as const)
      assert.throws(() => cno[call](), freed);
    assert.throws(() => cno.modifyAgent(null), freed);
    await assert.rejects(cno.wait(), freed);
    assert.throws(() => a.modifyCno(cno), freed);
  });

  it('refuses a CNO of another adapter, and what is none', () => {
    const { a } = scene();
    const wrong = dat('DAT_INVALID_HANDLE', 'DAT_INVALID_HANDLE_CNO');
    for (const cno of [scene().cno, {}, 7, undefined, a]) {
      assert.throws(() => a.modifyCno(cno as Cno), wrong);
    }
  });
});
