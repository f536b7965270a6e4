/** The end of an EVD: what it ends, what it waits for, and what it leaves. */
import assert from 'node:assert/strict';
import type { DatError } from '../../../core/errors/index.js';
import type { Evd, Upcall } from '../../../core/evd/index.js';
import { SpiError } from '../../../core/spi/index.js';
import { watch } from './cno-scene.js';
import { label, settle } from './fake-host.js';
import { dat, drain, setUp } from './set-up.js';

/** A handler that goes on until it is told to end. */
function lasting() {
  const ends: (() => void)[] = [];
  const upcalls: Upcall[] = [];
  const handler = (_event: unknown, upcall: Upcall): Promise<void> => {
    upcalls.push(upcall);
    return new Promise((resolve) => ends.push(resolve));
  };
  return { ends, upcalls, handler };
}

describe('evd: its end', () => {
  it('that the device refuses leaves it as it is', async () => {
    const { host, evd } = setUp();
    const destroy = host.cq.destroy.bind(host.cq);
    host.cq.destroy = () => {
      throw new SpiError('EBUSY', 'queue pairs are left');
    };
    const inUse = dat('DAT_INVALID_STATE', 'DAT_INVALID_STATE_EVD_IN_USE');
    await assert.rejects(evd.free(), inUse);
    assert.deepEqual([evd.isFreed, host.freed], [false, []]);
    evd.postSe(1);
    assert.deepEqual(drain(evd), [1]);
    host.cq.destroy = destroy;
    await evd.free();
    assert.deepEqual([evd.isFreed, host.freed.length], [true, 1]);
  });

  it('counts its users', async () => {
    const { evd } = setUp();
    evd.feed.attach();
    evd.feed.attach();
    await assert.rejects(evd.free(), (error: DatError) => {
      assert.equal(error.value, 2);
      return dat('DAT_INVALID_STATE', 'DAT_INVALID_STATE_EVD_IN_USE')(error);
    });
  });

  it('waits for the upcalls in progress, a second call too; a later one is refused', async () => {
    const { host, evd } = setUp();
    const { ends, handler } = lasting();
    evd.modifyUpcall('ONE', handler);
    for (const payload of [1, 2]) evd.postSe(payload);
    host.run();
    const frees = [watch(evd.free()), watch(evd.free())];
    for (const free of frees) assert.equal(await free.now(), 'pending');
    host.run();
    assert.equal(host.freed.length, 1);
    ends[0]?.();
    for (const free of frees) assert.deepEqual(await free.now(), { value: undefined });
    host.run();
    assert.equal(ends.length, 1, 'no upcall starts any more');
    assert.equal(host.kept, 0);
    await assert.rejects(evd.free(), dat('DAT_INVALID_HANDLE'));
  });

  it('`await using` frees it, unless that has been done or does not go', async () => {
    const { host, evd } = setUp();
    const end = evd.feed.attach();
    const inUse = dat('DAT_INVALID_STATE', 'DAT_INVALID_STATE_EVD_IN_USE');
    await assert.rejects(evd[Symbol.asyncDispose](), inUse);
    end();
    await evd[Symbol.asyncDispose]();
    await evd[Symbol.asyncDispose]();
    assert.deepEqual([evd.isFreed, host.freed], [true, [evd]]);
  });

  it('ends whatever takes its events, and lets the process go', async () => {
    const takers: Readonly<Record<string, (evd: Evd, log: unknown[]) => void>> = {
      waiter: (evd, log) => void evd.wait().catch((error: DatError) => log.push(error.code)),
      'waiter with a timeout': (evd, log) =>
        void evd.wait({ timeoutMs: 5 }).catch((error: DatError) => log.push(error.code)),
      iterator: (evd, log) =>
        void evd[Symbol.asyncIterator]()
          .next()
          .then(({ done }) => log.push(done)),
      subscription: (evd, log) => {
        evd.events$.subscribe({ complete: () => log.push('complete') });
      },
      upcall: (evd, log) => {
        evd.modifyUpcall('ONE', () => void log.push('upcall'));
        evd.postSe(1);
      },
    };
    const logs: Record<string, unknown[]> = {};
    for (const [name, take] of Object.entries(takers)) {
      const { host, evd } = setUp();
      const log: unknown[] = [];
      take(evd, log);
      await evd.free();
      assert.deepEqual(log.includes('complete'), false, 'not inside the call');
      host.advance(10);
      await settle();
      logs[name] = log;
      assert.deepEqual([host.kept, host.active.size, host.cq.destroyed], [0, 0, true], name);
    }
    assert.deepEqual(logs, {
      waiter: ['DAT_ABORT'],
      'waiter with a timeout': ['DAT_ABORT'],
      iterator: [true],
      subscription: ['complete'],
      upcall: [],
    });
  });

  it('refuses every later call', async () => {
    const { host, evd } = setUp();
    await evd.free();
    const { arms } = host.cq;
    const gone = dat('DAT_INVALID_HANDLE', 'DAT_INVALID_HANDLE_EVD_REQUEST');
    const calls: readonly (() => unknown)[] = [
      () => evd.query(),
      () => evd.enable(),
      () => evd.disable(),
      () => evd.setUnwaitable(),
      () => evd.clearUnwaitable(),
      () => evd.modifyCno(null),
      () => evd.modifyUpcall('DISABLE'),
      () => evd.dequeueInto(undefined as never),
    ];
    for (const call of calls) assert.throws(call, gone);
    let error: unknown;
    evd.events$.subscribe({ error: (reason: unknown) => (error = reason) });
    assert.ok(gone(error));
    await assert.rejects(evd[Symbol.asyncIterator]().next(), gone);
    assert.equal(host.cq.arms, arms);
  });

  it('leaves nothing to a pump that was due, nor to a notification under way', async () => {
    const { host, evd } = setUp();
    const { context } = host.endpoint();
    evd.modifyUpcall('ONE', () => assert.fail('the EVD has been freed'));
    host.cq.add({ context });
    evd.postSe(1);
    await evd.free();
    host.run();
    assert.equal(host.cq.arms, 1, 'that of the upcall');
    assert.deepEqual(host.async, []);
  });

  it('in the middle of a subscriber’s event: the rest is lost, and the stream completes', () => {
    const { host, evd } = setUp();
    const got: unknown[] = [];
    evd.events$.subscribe({
      next: (event) => {
        got.push(label(event));
        void evd.free();
      },
      complete: () => got.push('complete'),
    });
    for (const payload of [1, 2]) evd.postSe(payload);
    host.run();
    assert.deepEqual([got, host.kept], [[1, 'complete'], 0]);
  });
});
