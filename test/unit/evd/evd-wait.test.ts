import assert from 'node:assert/strict';
import { DatError } from '../../../core/errors/index.js';
import { Cno, type DatEvent, EvdState } from '../../../core/evd/index.js';

import { FakeHost, label, settle } from './fake-host.js';

import { dat, drain, setUp } from './set-up.js';

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

  it('refuses bad thresholds and timeouts, and thresholds without threshold mode', async () => {
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
    const detach = evd.feed.attach('SOLICITED');
    await assert.rejects(
      evd.wait({ threshold: 2 }),
      dat('DAT_INVALID_STATE', 'DAT_INVALID_STATE_EVD_CONFIG_SOLICITED'),
    );
    assert.throws(() => evd.feed.attach('NOTIFY'), dat('DAT_INVALID_STATE'));
    detach();
    detach();
    evd.feed.attach('NOTIFY')();
  });

  it('arms for solicited completions only where the streams say so', () => {
    const { host, evd } = setUp();
    evd.feed.attach('SOLICITED');
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

  it('an iteration that is left while it waits takes nothing any more', async () => {
    const { host, evd } = setUp();
    const iterator = evd[Symbol.asyncIterator]();
    const waiting = iterator.next();
    await settle();
    assert.deepEqual(await iterator.return(), { done: true, value: undefined });
    assert.deepEqual(await waiting, { done: true, value: undefined });
    assert.equal(evd.query().taker, 'none');
    assert.equal(host.kept, 0);
    evd.postSe(1);
    host.run();
    assert.deepEqual(drain(evd), [1]);
  });

  it('refuses options that it does not know: a misspelt timeout would wait for ever', async () => {
    const { evd } = setUp();
    const options = { timeout: 5 } as object;
    await assert.rejects(evd.wait(options), dat('DAT_INVALID_PARAMETER', 'DAT_INVALID_ARG2'));
    assert.throws(() => evd.modifyUpcall('DISABLE', null, options), dat('DAT_INVALID_PARAMETER'));
    assert.throws(() => evd.counters(options), dat('DAT_INVALID_PARAMETER'));
    await assert.rejects(evd.free(options), dat('DAT_INVALID_PARAMETER'));
    assert.throws(() => setUp(options), dat('DAT_INVALID_PARAMETER', 'DAT_INVALID_ARG2'));
    const cno = new Cno(new FakeHost(), { id: 1 });
    await assert.rejects(cno.wait(options), dat('DAT_INVALID_PARAMETER', 'DAT_INVALID_ARG2'));
  });
});
