/** What a wait and an iteration hold on to until they end, in whichever way. */
import assert from 'node:assert/strict';
import { getEventListeners } from 'node:events';
import type { DatEvent, Evd } from '../../../core/evd/index.js';
import { SpiError } from '../../../core/spi/index.js';
import { type FakeHost, label, settle } from './fake-host.js';
import { watch } from './cno-scene.js';
import { dat, drain, setUp } from './set-up.js';

type End = (evd: Evd, host: FakeHost, abort: AbortController) => void;

/** Every way in which a wait of 20 ms ends; the error, if it is one. */
const ENDS: Readonly<Record<string, readonly [end: End, error: string | undefined]>> = {
  'an event': [
    (evd, host) => {
      evd.postSe(1);
      host.run();
    },
    undefined,
  ],
  'the timeout': [(_, host) => host.advance(20), 'DAT_TIMEOUT_EXPIRED'],
  'an event that only the timeout sees': [
    (_, host) => {
      host.cq.armed = 'none';
      host.cq.add({ context: host.endpoint().context, cookie: 1 });
      host.advance(20);
    },
    undefined,
  ],
  'the signal': [(_evd, _host, abort) => abort.abort(), 'DAT_INTERRUPTED_CALL'],
  setUnwaitable: [(evd) => evd.setUnwaitable(), 'DAT_INVALID_STATE'],
  free: [(evd) => void evd.free(), 'DAT_ABORT'],
};

describe('evd: the end of a wait', () => {
  for (const [name, [end, error]] of Object.entries(ENDS)) {
    it(`by ${name}: its signal, its timer and the process are let go`, async () => {
      const { host, evd } = setUp();
      const abort = new AbortController();
      const waiting = evd.wait({ signal: abort.signal, timeoutMs: 20 });
      assert.equal(getEventListeners(abort.signal, 'abort').length, 1);
      assert.deepEqual([host.active.size, host.kept], [1, 1]);
      end(evd, host, abort);
      if (error === undefined) assert.equal(label((await waiting).event), 1);
      else await assert.rejects(waiting, dat(error));
      assert.equal(getEventListeners(abort.signal, 'abort').length, 0);
      assert.deepEqual([host.active.size, host.kept], [0, 0]);
      if (evd.isFreed) return;
      assert.equal(evd.query().taker, 'none');
      evd.clearUnwaitable();
      const again = evd.wait();
      evd.postSe(2);
      abort.abort();
      host.run();
      assert.equal(label((await again).event), 2, 'what ended the former ends no later one');
    });
  }

  it('comes when its time is up, not before; Infinity and nothing are no limit', async () => {
    const { host, evd } = setUp();
    host.advance(5);
    const timed = watch(evd.wait({ timeoutMs: 20 }));
    host.advance(19);
    assert.equal(await timed.now(), 'pending');
    host.advance(1);
    assert.notEqual(await timed.now(), 'pending');
    const stopped: unknown[] = [];
    host.timers.stop = (timer) => void stopped.push(timer);
    for (const options of [{ timeoutMs: Infinity }, {}, { timeoutMs: undefined }]) {
      const waiting = evd.wait(options as object);
      assert.equal(host.active.size, 0);
      evd.postSe('at last');
      host.run();
      assert.equal(label((await waiting).event), 'at last');
    }
    assert.deepEqual(stopped, [], 'no timer, none to stop');
  });

  it('goes on when what it was woken for is gone: the endpoint has been freed', async () => {
    const { host, evd } = setUp();
    const ep = host.endpoint();
    const abort = new AbortController();
    const waiting = watch(evd.wait({ timeoutMs: 20, signal: abort.signal }));
    host.cq.add({ context: ep.context, cookie: 1 });
    evd.feed.scan();
    host.owners.free(ep.context);
    host.run();
    assert.equal(await waiting.now(), 'pending');
    assert.deepEqual([host.active.size, host.kept], [1, 1]);
    assert.equal(getEventListeners(abort.signal, 'abort').length, 1);
    evd.postSe('later');
    host.run();
    const { value } = (await waiting.now()) as { value?: { event: DatEvent } };
    assert.equal(label(value?.event), 'later');
    assert.deepEqual([host.active.size, host.kept], [0, 0]);
  });
});

type Iterator = ReturnType<Evd[typeof Symbol.asyncIterator]>;
const END = { done: true, value: undefined };

function begin(): { host: FakeHost; evd: Evd; iterator: Iterator } {
  const { host, evd } = setUp();
  return { host, evd, iterator: evd[Symbol.asyncIterator]() };
}

describe('evd: the end of an iteration', () => {
  it('that waits, by setUnwaitable: an error, and the EVD is given back', async () => {
    const { host, evd, iterator } = begin();
    const next = iterator.next();
    evd.setUnwaitable();
    const unwaitable = dat('DAT_INVALID_STATE', 'DAT_INVALID_STATE_EVD_UNWAITABLE');
    await assert.rejects(next, unwaitable);
    assert.deepEqual([evd.query().taker, host.kept], ['none', 0]);
    assert.deepEqual(await iterator.next(), END);
    evd.clearUnwaitable();
    assert.deepEqual(await iterator.next(), END, 'over is over');
    evd.postSe(1);
    assert.deepEqual(drain(evd), [1]);
  });

  it('between two batches, by setUnwaitable: the next one is an error, and the last', async () => {
    const { host, evd, iterator } = begin();
    evd.postSe(1);
    await iterator.next();
    evd.setUnwaitable();
    assert.equal(evd.query().taker, 'iterator');
    await assert.rejects(iterator.next(), dat('DAT_INVALID_STATE'));
    assert.deepEqual([evd.query().taker, host.kept], ['none', 0]);
    assert.deepEqual(await iterator.next(), END);
  });

  it('by free, while it waits and between two batches', async () => {
    const waits = begin();
    const next = waits.iterator.next();
    await waits.evd.free();
    assert.deepEqual(await next, END);
    assert.deepEqual(await waits.iterator.next(), END);
    assert.equal(waits.host.kept, 0);
    const between = begin();
    between.evd.postSe(1);
    await between.iterator.next();
    await between.evd.free();
    assert.deepEqual(await between.iterator.next(), END);
    assert.equal(between.host.kept, 0);
  });

  it('before it has begun: it takes nothing over, and never begins', async () => {
    const { evd, iterator } = begin();
    assert.equal(evd.query().taker, 'none');
    const { iterator: other, evd: busy } = begin();
    const waiting = busy.wait();
    assert.deepEqual(await other.return(), END);
    assert.deepEqual(await other.next(), END);
    assert.equal(busy.query().taker, 'waiter', 'another taker is left alone');
    busy.setUnwaitable();
    await assert.rejects(waiting, dat('DAT_INVALID_STATE'));
    evd.postSe(1);
    assert.deepEqual(await iterator.return(), END);
    assert.deepEqual(drain(evd), [1]);
  });

  it('that could not begin is none: it begins when the other taker has gone', async () => {
    const { host, evd, iterator } = begin();
    const subscription = evd.events$.subscribe();
    await assert.rejects(iterator.next(), dat('DAT_INVALID_STATE'));
    assert.equal(evd.query().taker, 'subscription');
    subscription.unsubscribe();
    evd.postSe(1);
    host.run();
    assert.deepEqual(((await iterator.next()).value ?? []).map(label), [1]);
    await iterator.return();
    assert.equal(evd.query().taker, 'none');
  });

  it('by a second `next` beside one that waits: neither takes an event any more', async () => {
    const { host, evd, iterator } = begin();
    const first = iterator.next();
    await assert.rejects(iterator.next(), dat('DAT_INVALID_STATE'));
    assert.deepEqual(await first, END);
    assert.deepEqual([evd.query().taker, host.kept], ['none', 0]);
    evd.postSe(1);
    host.run();
    assert.deepEqual(drain(evd), [1]);
  });

  it('called twice ends no later iteration, and puts nothing back twice', async () => {
    const { evd, iterator } = begin();
    for (const payload of [1, 2]) evd.postSe(payload);
    await iterator.next();
    await iterator.return();
    const later = evd[Symbol.asyncIterator]();
    assert.deepEqual(((await later.next()).value ?? []).map(label), [1, 2]);
    await iterator.return();
    assert.equal(evd.query().taker, 'iterator');
    assert.deepEqual(await iterator.next(), END);
    assert.equal(evd.query().taker, 'iterator');
    await later.return();
    assert.deepEqual(drain(evd), []);
  });

  it('while it waits for the next batch: the last one has been the loop’s own since', async () => {
    const { host, evd, iterator } = begin();
    for (const payload of [1, 2]) evd.postSe(payload);
    const { value: batch = [] } = await iterator.next();
    const next = iterator.next();
    await iterator.return();
    assert.deepEqual(await next, END);
    assert.deepEqual(drain(evd), [], 'neither of them is put back');
    assert.deepEqual(batch.map(label), [1, 2]);
    assert.equal(host.kept, 0);
  });

  it('by a queue that cannot be read: an Error, whatever the device throws', async () => {
    for (const thrown of ['a text', undefined, new SpiError('EIO', 'gone')]) {
      const { host, evd, iterator } = begin();
      host.cq.poll = () => {
        throw thrown as Error;
      };
      await assert.rejects(iterator.next(), (error: unknown) => {
        assert.ok(error instanceof Error);
        assert.ok(error.message.includes(thrown instanceof Error ? 'gone' : String(thrown)));
        return true;
      });
      assert.deepEqual([host.kept, await iterator.next()], [0, END]);
      host.cq.poll = () => 0;
      assert.equal(evd.query().taker, 'none');
    }
  });

  it('does not come with a wake-up whose events are gone: it goes on', async () => {
    const { host, evd, iterator } = begin();
    const ep = host.endpoint();
    const next = watch(iterator.next());
    host.cq.add({ context: ep.context, cookie: 1 });
    evd.feed.scan();
    host.owners.free(ep.context);
    host.run();
    assert.equal(await next.now(), 'pending');
    evd.postSe(2);
    host.run();
    await settle();
    assert.notEqual(await next.now(), 'pending');
    assert.deepEqual(drain(evd), []);
    await iterator.return();
    assert.deepEqual(drain(evd), [2], 'left unread');
  });
});
