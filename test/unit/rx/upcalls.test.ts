/** Upcalls as a stream: the policies of DAT, and what is left in the dispatcher. */
import assert from 'node:assert/strict';
import { concatMap, map, type Observable, share, take, toArray } from 'rxjs';
import type { Evd } from '../../../core/evd/index.js';
import { upcalls, type UpcallsOptions } from '../../../core/rx/index.js';
import { label, settle } from '../evd/fake-host.js';
import { dat, drain } from '../evd/set-up.js';
import { watch } from './scene.js';
import { withEvents, rest, Stalling, ONE, doubled } from './upcall-scene.js';

describe('rx: upcalls', () => {
  it('emit what each returns, or its promise resolves to, as they end', async () => {
    const { host, evd } = withEvents(1, 2, 3);
    const { seen } = watch(
      upcalls(evd, ONE, (event) => {
        const value = doubled(event);
        return value === 4 ? Promise.resolve(value) : value;
      }),
    );
    assert.deepEqual(seen, [], 'nothing starts inside the call that subscribes');
    await rest(host);
    assert.deepEqual(seen, [2, 4, 6]);
  });

  it('leave events in the EVD while a handler stalls, where concatMap hoards them', async () => {
    const { host, evd } = withEvents(1, 2, 3, 4, 5);
    const stalled = new Stalling();
    const { subscription } = watch(upcalls(evd, ONE, stalled.handler));
    await rest(host);
    assert.deepEqual([stalled.begun, evd.query().pending], [[1], 4]);
    subscription.unsubscribe();
    assert.equal(evd.query().pending, 4);

    const hoarder = new Stalling();
    watch(evd.events$.pipe(concatMap(hoarder.handler)));
    await rest(host);
    assert.deepEqual([hoarder.begun, evd.query().pending], [[2], 0]);
  });

  it('overlap under MANY up to the limit; what is beyond it stays in the EVD', async () => {
    const { host, evd } = withEvents(1, 2, 3, 4, 5);
    const stalled = new Stalling();
    const { seen } = watch(upcalls(evd, { policy: 'MANY', limit: 2 }, stalled.handler));
    await rest(host);
    assert.deepEqual([stalled.begun, evd.query().pending], [[1, 2], 3]);
    stalled.ends.shift()!('first');
    await rest(host);
    assert.deepEqual([stalled.begun, evd.query().pending, seen], [[1, 2, 3], 2, ['first']]);
  });

  it('carry no event under NOTIFY: all stay until the handler dequeues them', async () => {
    const { host, evd } = withEvents(1, 2, 3);
    const calls: unknown[] = [];
    const { seen } = watch(
      upcalls(evd, { policy: 'NOTIFY' }, (event) => {
        calls.push(event, evd.query().pending);
        return drain(evd);
      }),
    );
    await rest(host);
    assert.deepEqual(calls, [undefined, 3]);
    assert.deepEqual(seen, [[1, 2, 3]]);
  });

  it('set the policy when subscribed to, and TEARDOWN when left', async () => {
    const { host, evd } = withEvents();
    const stream$ = upcalls(evd, { policy: 'MANY', limit: 3 }, doubled);
    assert.equal(evd.query().policy, 'DISABLE');
    const { subscription } = watch(stream$);
    const { policy, upcallLimit, taker } = evd.query();
    assert.deepEqual([policy, upcallLimit, taker], ['MANY', 3, 'upcall']);
    subscription.unsubscribe();
    assert.deepEqual([evd.query().policy, evd.query().taker], ['TEARDOWN', 'none']);
    evd.postSe(1);
    await rest(host);
    assert.deepEqual(drain(evd), [1]);
  });

  it('may be subscribed to again, and go on with what waits', async () => {
    const { host, evd } = withEvents(1, 2, 3, 4);
    const stream$ = upcalls(evd, ONE, doubled);
    const first = watch(stream$.pipe(take(1)));
    await rest(host);
    const second = watch(stream$.pipe(take(2), toArray()));
    await rest(host);
    assert.deepEqual(
      [first.seen, second.seen],
      [
        [2, 'complete'],
        [[4, 6], 'complete'],
      ],
    );
    assert.deepEqual(drain(evd), [4]);
  });

  it('are one subscriber’s; share() is for several', async () => {
    const { host, evd } = withEvents(1);
    const stream$ = upcalls(evd, ONE, doubled);
    const first = watch(stream$);
    for (const other$ of [stream$, upcalls(evd, ONE, doubled)]) {
      assert.deepEqual(watch(other$).seen, ['DAT_INVALID_STATE']);
    }
    await rest(host);
    assert.deepEqual(first.seen, [2], 'the first has not noticed');
    first.subscription.unsubscribe();
    const shared$ = stream$.pipe(share());
    const both = [watch(shared$), watch(shared$)];
    evd.postSe(2);
    await rest(host);
    assert.deepEqual(
      both.map(({ seen }) => seen),
      [[4], [4]],
    );
  });

  it('have the events to themselves: one taker, whichever comes first', async () => {
    const { host, evd } = withEvents();
    const { subscription } = watch(upcalls(evd, ONE, doubled));
    await assert.rejects(evd.wait(), dat('DAT_INVALID_STATE'));
    assert.deepEqual(watch(evd.events$).seen, ['DAT_INVALID_STATE']);
    subscription.unsubscribe();

    const waiting = evd.wait();
    assert.deepEqual(watch(upcalls(evd, ONE, doubled)).seen, ['DAT_INVALID_STATE']);
    evd.postSe(1);
    await rest(host);
    assert.equal(label((await waiting).event), 1);

    const events = watch(evd.events$);
    assert.deepEqual(watch(upcalls(evd, ONE, doubled)).seen, ['DAT_INVALID_STATE']);
    events.subscription.unsubscribe();

    evd.modifyUpcall('ONE', () => undefined);
    assert.deepEqual(watch(upcalls(evd, ONE, doubled)).seen, ['DAT_INVALID_STATE']);
    assert.equal(evd.query().policy, 'ONE', 'the other upcalls go on');
  });

  it('leave the rest in the EVD when left in the handler, sync or async', async () => {
    for (const isAsync of [false, true]) {
      const { host, evd } = withEvents(1, 2, 3);
      let calls = 0;
      const stream$ = upcalls(evd, ONE, async () => {
        calls++;
        if (isAsync) await settle();
        subscription.unsubscribe();
      });
      const { subscription, seen } = watch(stream$);
      await rest(host);
      assert.deepEqual([calls, seen, host.async], [1, [], []]);
      assert.deepEqual(drain(evd), [2, 3]);
      await stream$.torndown;
    }
  });

  it('leave the rest in the EVD when an operator behind them throws', async () => {
    const { host, evd } = withEvents(1, 2, 3);
    const wrong = new Error('the operator');
    const { seen } = watch(
      upcalls(evd, ONE, doubled).pipe(
        map((value) => {
          if (value === 4) throw wrong;
          return value;
        }),
      ),
    );
    await rest(host);
    assert.deepEqual(seen, [2, wrong]);
    assert.deepEqual([evd.query().policy, drain(evd), host.async], ['TEARDOWN', [3], []]);
  });

  it('report what a handler throws or rejects with as DAT does, and go on', async () => {
    const { host, evd } = withEvents(1, 2, 3);
    const { seen } = watch(
      upcalls(evd, ONE, (event) => {
        const number = label(event);
        if (number === 1) throw new Error('thrown');
        if (number === 2) return Promise.reject(new Error('rejected'));
        return number;
      }),
    );
    await rest(host);
    assert.deepEqual(seen, [3]);
    const causes = host.async.map(({ cause }) => (cause as Error).message);
    assert.deepEqual(causes, ['thrown', 'rejected']);
  });

  it('complete when the EVD is freed, after the upcalls in progress', async () => {
    const { host, evd } = withEvents(1);
    const stalled = new Stalling();
    const { seen } = watch(upcalls(evd, ONE, stalled.handler));
    await rest(host);
    const freed = evd.free();
    await rest(host);
    assert.deepEqual(seen, []);
    stalled.endAll();
    await rest(host);
    await freed;
    assert.deepEqual(seen, ['ended', 'complete']);
    assert.deepEqual(watch(upcalls(evd, ONE, doubled)).seen, ['DAT_INVALID_HANDLE']);
  });

  it('complete when others set TEARDOWN or a handler, never inside that call', async () => {
    const others: readonly ((evd: Evd) => unknown)[] = [
      (evd) => evd.modifyUpcall('TEARDOWN'),
      (evd) => evd.modifyUpcall('ONE', () => undefined),
      (evd) => evd.modifyUpcall('DISABLE', null),
    ];
    for (const other of others) {
      const { host, evd } = withEvents();
      const { seen } = watch(upcalls(evd, ONE, doubled));
      void other(evd);
      const after = evd.query().policy;
      assert.deepEqual(seen, []);
      await rest(host);
      assert.deepEqual([seen, evd.query().policy], [['complete'], after]);
    }
  });

  it('complete when one of them tears down, with its own result as the last', async () => {
    const { host, evd } = withEvents(1, 2, 3);
    const { seen } = watch(
      upcalls(evd, ONE, async (event, upcall) => {
        if (label(event) === 2) await upcall.teardown();
        return doubled(event);
      }),
    );
    await rest(host);
    assert.deepEqual([seen, drain(evd)], [[2, 4, 'complete'], [3]]);
  });

  it('go on when a consumer disables and enables them by DAT', async () => {
    const { host, evd } = withEvents(1);
    const { seen } = watch(upcalls(evd, ONE, doubled));
    evd.modifyUpcall('DISABLE');
    await rest(host);
    assert.deepEqual(seen, []);
    evd.modifyUpcall('ONE');
    await rest(host);
    assert.deepEqual(seen, [2]);
  });

  it('let a subscriber await the end of the EVD, as a handler may not', async () => {
    const { host, evd } = withEvents(1);
    const log: unknown[] = [];
    upcalls(evd, ONE, async (event) => {
      await settle();
      return doubled(event);
    }).subscribe((value) => {
      const free = async (): Promise<void> => {
        await evd.free();
        log.push('freed');
      };
      log.push(value);
      free().catch((error: unknown) => log.push(error));
    });
    await rest(host);
    assert.deepEqual(log, [2, 'freed']);
  });

  it('take nothing that is not one of theirs', () => {
    const { evd } = withEvents();
    const handler = (): undefined => undefined;
    const calls: readonly (() => unknown)[] = [
      () => upcalls({} as Evd, ONE, handler),
      () => upcalls(evd, { policy: 'DISABLE' as 'ONE' }, handler),
      () => upcalls(evd, ONE, undefined as unknown as typeof handler),
      () => upcalls(evd, { policy: 'MANY', limit: 0 }, handler),
      () => upcalls(evd, { ...ONE, pending: 'drop' as 'keep' }, handler),
      () => upcalls(evd, { ...ONE, paused$: true as unknown as Observable<boolean> }, handler),
      () => upcalls(evd, { ...ONE, refused: 1 as unknown as () => void }, handler),
      () => upcalls(evd, { ...ONE, pauses$: 1 } as UpcallsOptions & typeof ONE, handler),
    ];
    for (const call of calls) assert.throws(call, dat('DAT_INVALID_PARAMETER'));
  });
});
