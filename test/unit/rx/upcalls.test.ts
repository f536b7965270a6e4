/** Upcalls as a stream: the policies of DAT, and what is left in the dispatcher. */
import assert from 'node:assert/strict';
import {
  BehaviorSubject,
  concatMap,
  map,
  type Observable,
  share,
  Subject,
  take,
  toArray,
} from 'rxjs';
import type { DatError } from '../../../core/errors/index.js';
import type { DatEvent, Evd, Upcall } from '../../../core/evd/index.js';
import { upcalls, type UpcallsOptions } from '../../../core/rx/index.js';
import { heldBytes } from '../../support/heap.js';
import { type FakeHost, label, settle } from '../evd/fake-host.js';
import { dat, drain, setUp } from '../evd/set-up.js';
import { watch } from './scene.js';

/** A dispatcher with events of these payloads. */
function withEvents(...payloads: readonly unknown[]): { host: FakeHost; evd: Evd } {
  const { host, evd } = setUp({ qlen: 64 });
  for (const payload of payloads) evd.postSe(payload);
  return { host, evd };
}

/** All that can move, moves. */
async function rest(host: FakeHost): Promise<void> {
  for (let i = 0; i < 6; i++) {
    host.run();
    await settle();
  }
}

/** A handler whose upcalls last until they are told to end. */
class Stalling {
  readonly begun: unknown[] = [];
  readonly ends: ((value: unknown) => void)[] = [];
  readonly handler = (event: DatEvent | undefined): Promise<unknown> => {
    this.begun.push(label(event));
    return new Promise((resolve) => this.ends.push(resolve));
  };

  endAll(): void {
    for (const end of this.ends.splice(0)) end('ended');
  }
}

const ONE = { policy: 'ONE' } as const;
const doubled = (event: DatEvent): number => 2 * (label(event) as number);

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

describe('rx: upcalls that pause', () => {
  /** Paused with two events, of which the first came before. */
  async function paused(
    options: Partial<Omit<UpcallsOptions, 'policy'>>,
  ): Promise<{ host: FakeHost; evd: Evd; paused$: Subject<boolean>; seen: unknown[] }> {
    const { host, evd } = withEvents();
    const paused$ = new Subject<boolean>();
    const { seen } = watch(upcalls(evd, { ...ONE, paused$, ...options }, doubled));
    await rest(host);
    paused$.next(true);
    for (const payload of [1, 2]) evd.postSe(payload);
    await rest(host);
    const { policy, pending } = evd.query();
    assert.deepEqual([seen, policy, pending], [[], 'DISABLE', 2]);
    return { host, evd, paused$, seen };
  }

  it('by deliver: what waits fires them when the pause ends', async () => {
    for (const options of [{}, { pending: 'deliver' }] as const) {
      const { host, paused$, seen } = await paused(options);
      paused$.next(false);
      assert.deepEqual(seen, [], 'none starts inside the call');
      await rest(host);
      assert.deepEqual(seen, [2, 4]);
    }
  });

  it('by keep: what waits stays until the next event, whose upcall has the oldest', async () => {
    const { host, evd, paused$, seen } = await paused({ pending: 'keep' });
    paused$.next(false);
    await rest(host);
    assert.deepEqual([seen, evd.query().pending], [[], 2]);
    evd.postSe(3);
    await rest(host);
    assert.deepEqual(seen, [2, 4, 6]);
  });

  it('by refuse: the pause goes on while any waits, and says how many', async () => {
    const refusals: DatError[] = [];
    const refused = (error: DatError): unknown => refusals.push(error);
    const { host, evd, paused$, seen } = await paused({ pending: 'refuse', refused });
    paused$.next(false);
    await rest(host);
    assert.deepEqual([seen, evd.query().policy, evd.query().pending], [[], 'DISABLE', 2]);
    assert.deepEqual(
      refusals.map(({ code, value }) => [code, value]),
      [['DAT_INVALID_STATE', 2]],
    );
    assert.deepEqual(drain(evd), [1, 2]);
    paused$.next(false);
    evd.postSe(3);
    await rest(host);
    assert.deepEqual([seen, refusals.length], [[6], 1]);
  });

  it('by refuse, a consumer that drains in its own context loses and doubles nothing', async () => {
    const { host, evd } = withEvents();
    const paused$ = new Subject<boolean>();
    const got: unknown[] = [];
    const own = (): void => {
      got.push(...drain(evd));
      paused$.next(false);
    };
    upcalls(evd, { ...ONE, paused$, pending: 'refuse', refused: own }, (event, upcall) => {
      got.push(label(event));
      if (!upcall.moreEvents) return;
      paused$.next(true);
      void settle().then(own);
    }).subscribe();
    for (let i = 0; i < 40; i++) {
      evd.postSe(i);
      if (i % 3 === 0) await rest(host);
    }
    await rest(host);
    assert.deepEqual(
      got,
      Array.from({ length: 40 }, (_, i) => i),
    );
  });

  it('end with the refusal where none is told of it; the events stay', async () => {
    const { host, evd, paused$, seen } = await paused({ pending: 'refuse' });
    paused$.next(false);
    await rest(host);
    assert.deepEqual([seen, drain(evd)], [['DAT_INVALID_STATE'], [1, 2]]);
  });

  it('do not begin by refuse where events wait, and lose none', () => {
    const { evd } = withEvents(1, 2);
    const { seen } = watch(upcalls(evd, { ...ONE, pending: 'refuse' }, doubled));
    assert.deepEqual([seen, evd.query().policy], [['DAT_INVALID_STATE'], 'DISABLE']);
    assert.deepEqual(drain(evd), [1, 2]);
  });

  it('do not begin by keep with what waits', async () => {
    const { host, evd } = withEvents(1);
    const { seen } = watch(upcalls(evd, { ...ONE, pending: 'keep' }, doubled));
    await rest(host);
    assert.deepEqual(seen, []);
    evd.postSe(2);
    await rest(host);
    assert.deepEqual(seen, [2, 4]);
  });

  it('may begin with a pause, in which the EVD is another taker’s to read', async () => {
    const { host, evd } = withEvents(1);
    const paused$ = new BehaviorSubject(true);
    const { seen } = watch(upcalls(evd, { ...ONE, paused$ }, doubled));
    await rest(host);
    assert.deepEqual([seen, evd.query().policy], [[], 'DISABLE']);
    assert.deepEqual(watch(upcalls(evd, ONE, doubled)).seen, ['DAT_INVALID_STATE']);
    assert.equal(label((await evd.wait()).event), 1);
    evd.postSe(2);
    paused$.next(false);
    await rest(host);
    assert.deepEqual(seen, [4]);
  });

  it('tell why the pause cannot end: a waiter takes the events', async () => {
    const { host, evd } = withEvents();
    const paused$ = new BehaviorSubject(true);
    const codes: string[] = [];
    const refused = ({ code }: DatError): unknown => codes.push(code);
    watch(upcalls(evd, { ...ONE, paused$, refused }, doubled));
    const waiting = evd.wait();
    paused$.next(false);
    assert.deepEqual(codes, ['DAT_INVALID_STATE']);
    evd.postSe(1);
    await rest(host);
    assert.equal(label((await waiting).event), 1);
  });

  it('let the upcalls in progress go on, and start none', async () => {
    const { host, evd } = withEvents(1, 2);
    const paused$ = new Subject<boolean>();
    const stalled = new Stalling();
    const { seen } = watch(upcalls(evd, { ...ONE, paused$ }, stalled.handler));
    await rest(host);
    paused$.next(true);
    stalled.endAll();
    await rest(host);
    assert.deepEqual([stalled.begun, seen, evd.query().pending], [[1], ['ended'], 1]);
  });

  it('hear nothing of paused$ once left, and end with its error, not with its end', async () => {
    const { host, evd } = withEvents(1);
    const paused$ = new Subject<boolean>();
    const first = watch(upcalls(evd, { ...ONE, paused$ }, doubled));
    first.subscription.unsubscribe();
    assert.equal(paused$.observed, false);
    const second = watch(upcalls(evd, { ...ONE, paused$ }, doubled));
    const wrong = new Error('the control');
    paused$.error(wrong);
    assert.deepEqual([second.seen, evd.query().policy], [[wrong], 'TEARDOWN']);

    const ending$ = new Subject<boolean>();
    const third = watch(upcalls(evd, { ...ONE, paused$: ending$ }, doubled));
    ending$.complete();
    await rest(host);
    assert.deepEqual(third.seen, [2]);
  });

  it('ignore a pause between the end of the EVD and that of the stream', async () => {
    const { host, evd } = withEvents();
    const paused$ = new Subject<boolean>();
    const { seen } = watch(upcalls(evd, { ...ONE, paused$ }, doubled));
    void evd.free();
    for (const wanted of [true, false]) paused$.next(wanted);
    await rest(host);
    assert.deepEqual(seen, ['complete']);
  });
});

describe('rx: the end of upcalls', () => {
  it('torndown waits for the handlers in progress', async () => {
    const { host, evd } = withEvents(1, 2, 3);
    const stalled = new Stalling();
    const stream$ = upcalls(evd, { policy: 'MANY', limit: 2 }, stalled.handler);
    const log: string[] = [];
    void stream$.torndown.then(() => log.push('torndown'));
    const { subscription, seen } = watch(stream$);
    await rest(host);
    assert.deepEqual(log, [], 'not before it has been left');
    subscription.unsubscribe();
    for (const ended of [0, 1]) {
      await rest(host);
      assert.deepEqual(log, [], `${ended} of 2 have ended`);
      stalled.ends.shift()!('late');
    }
    await rest(host);
    assert.deepEqual([log, seen, drain(evd)], [['torndown'], [], [3]]);
  });

  it('torndown is of the present subscription', async () => {
    const { host, evd } = withEvents(1);
    const stalled = new Stalling();
    const stream$ = upcalls(evd, ONE, stalled.handler);
    watch(stream$).subscription.unsubscribe();
    await stream$.torndown;
    const { subscription } = watch(stream$);
    await rest(host);
    const log: string[] = [];
    void stream$.torndown.then(() => log.push('second'));
    watch(stream$);
    subscription.unsubscribe();
    await rest(host);
    assert.deepEqual(log, []);
    stalled.endAll();
    await rest(host);
    assert.deepEqual(log, ['second']);
  });

  it('torndown, taken in a handler, does not wait for that upcall', async () => {
    const { host, evd } = withEvents(1);
    const log: string[] = [];
    const stream$ = upcalls(evd, ONE, async () => {
      subscription.unsubscribe();
      await stream$.torndown;
      log.push('handler');
    });
    const { subscription } = watch(stream$);
    await rest(host);
    assert.deepEqual(log, ['handler']);
    await stream$.torndown;
  });

  it('torndown, awaited later by a handler, is refused: it would wait for itself', async () => {
    const { host, evd } = withEvents(1);
    const stream$ = upcalls(evd, ONE, async () => {
      await settle();
      subscription.unsubscribe();
      await stream$.torndown;
    });
    const { subscription } = watch(stream$);
    await rest(host);
    assert.equal(host.async.length, 1);
    assert.ok(dat('DAT_INVALID_STATE')(host.async[0]!.cause));
    await stream$.torndown;
  });

  it('is told to an upcall by name, too: it waits for the others', async () => {
    const { host, evd } = withEvents(1, 2);
    const stalled = new Stalling();
    const log: string[] = [];
    const handler = async (event: DatEvent, upcall: Upcall): Promise<void> => {
      if (label(event) === 1) await stalled.handler(event);
      else await upcall.teardown();
      log.push(String(label(event)));
    };
    watch(upcalls(evd, { policy: 'MANY' }, handler));
    await rest(host);
    assert.deepEqual(log, []);
    stalled.endAll();
    await rest(host);
    assert.deepEqual(log, ['1', '2']);
  });

  it('of 10,000 subscriptions leaves nothing', async () => {
    const { host, evd } = withEvents();
    const paused$ = new BehaviorSubject(false);
    const round = async (times: number): Promise<void> => {
      for (let i = 0; i < times; i++) {
        const stream$ = upcalls(evd, { ...ONE, paused$ }, doubled);
        evd.postSe(i);
        const { subscription } = watch(stream$);
        if (i % 2 === 0) host.run();
        subscription.unsubscribe();
        if (i % 2 === 1) evd.dequeue();
        host.run();
      }
      await settle();
    };
    await round(1000);
    const before = await heldBytes();
    await round(10_000);
    const grown = (await heldBytes()) - before;
    assert.ok(grown < 500_000, `${grown} bytes, ${grown / 10_000} of each`);
    const { pending, taker, upcallsInProgress } = evd.query();
    assert.deepEqual([pending, taker, upcallsInProgress], [0, 'none', 0]);
    assert.deepEqual([host.kept, host.tasks.length, paused$.observed], [0, 0, false]);
  });
});
