/** The end of streams of upcalls: what TEARDOWN waits for, and that nothing is left. */
import assert from 'node:assert/strict';
import { BehaviorSubject } from 'rxjs';
import type { DatEvent, Upcall } from '../../../core/evd/index.js';
import { upcalls } from '../../../core/rx/index.js';
import { heldBytes } from '../../support/heap.js';
import { label, settle } from '../evd/fake-host.js';
import { drain } from '../evd/set-up.js';
import { watch } from './scene.js';
import { withEvents, rest, Stalling, ONE, doubled } from './upcall-scene.js';

/** Of each subscription that has ended: the smallest object, kept in an array, has 43. */
const MOST_LEFT_BYTES = 20;

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

  it('torndown, awaited later by a handler, does not wait for that', async () => {
    const { host, evd } = withEvents(1);
    let isOver = false;
    const stream$ = upcalls(evd, ONE, async () => {
      await settle();
      subscription.unsubscribe();
      await stream$.torndown;
      isOver = true;
    });
    const { subscription } = watch(stream$);
    await rest(host);
    assert.deepEqual([isOver, host.async.length], [true, 0]);
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

  it('of 50,000 subscriptions leaves nothing', async () => {
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
    // As many as are measured: what the process compiles for them meanwhile stays, too.
    await round(50_000);
    const before = await heldBytes();
    await round(50_000);
    const grown = (await heldBytes()) - before;
    assert.ok(grown < 50_000 * MOST_LEFT_BYTES, `${grown} bytes, ${grown / 50_000} of each`);
    const { pending, taker, upcallsInProgress } = evd.query();
    assert.deepEqual([pending, taker, upcallsInProgress], [0, 'none', 0]);
    assert.deepEqual([host.kept, host.tasks.length, paused$.observed], [0, 0, false]);
  });
});
