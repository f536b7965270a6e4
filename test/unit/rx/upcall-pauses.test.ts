/** Streams of upcalls that pause: DISABLE and back, in each of its three ways. */
import assert from 'node:assert/strict';
import { BehaviorSubject, Subject } from 'rxjs';
import type { DatError } from '../../../core/errors/index.js';
import type { Evd } from '../../../core/evd/index.js';
import { upcalls, type UpcallsOptions } from '../../../core/rx/index.js';
import { type FakeHost, label, settle } from '../evd/fake-host.js';
import { drain } from '../evd/set-up.js';
import { watch } from './scene.js';
import { withEvents, rest, Stalling, ONE, doubled } from './upcall-scene.js';

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
