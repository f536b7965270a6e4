import assert from 'node:assert/strict';
import { FlowError, type Held, Requests } from '../../../core/flow/index.js';
import { failureOf } from '../../support/flow-scene.js';
import { VirtualWorld } from '../../support/virtual-world.js';

/** Requests of a queue that only the test completes. */
class Scene {
  readonly world = new VirtualWorld();
  readonly requests: Requests<number>;
  readonly posted: number[] = [];
  /** Of each release, whether it was wanted. */
  readonly released: boolean[] = [];

  constructor(limit: number) {
    this.requests = new Requests({ clock: this.world, timers: this.world }, limit);
  }

  readonly post = (cookie: number): Held => {
    this.posted.push(cookie);
    return { release: (isWanted) => void this.released.push(isWanted) };
  };
}

const ended = (operation: string): FlowError =>
  new FlowError('DAT_CONN_BROKEN', { operation, message: 'gone' });

describe('flow: requests by cookie', () => {
  it('resolve with what completes them, in any order, and give back what they held', async () => {
    const { requests, post, posted, released } = new Scene(2);
    const promises = [requests.post('a', post), requests.post('b', post)];
    const [first, second] = posted as [number, number];
    requests.complete(second, 20);
    requests.complete(first, 10);
    assert.deepEqual(await Promise.all(promises), [10, 20]);
    assert.deepEqual(released, [true, true]);
    assert.equal(requests.posted, 0);
  });

  it('wait for a slot in the order of the calls', async () => {
    const { requests, post, posted } = new Scene(1);
    const order: string[] = [];
    const run = (name: string): Promise<unknown> =>
      requests.post(name, post).then(() => order.push(name));
    const all = ['a', 'b', 'c'].map(run);
    assert.deepEqual([posted.length, requests.queued], [1, 2]);
    for (let i = 0; i < 3; i++) requests.complete(posted.at(-1) as number, i);
    await Promise.all(all);
    assert.deepEqual(order, ['a', 'b', 'c']);
  });

  it('are tracked under the next cookie, which there is for one that need not wait', async () => {
    const { requests, post, posted, released } = new Scene(2);
    const cookie = requests.nextCookie as number;
    const held: Held = { release: (isWanted) => void released.push(isWanted) };
    const tracked = requests.track('a', held, {});
    assert.notEqual(requests.nextCookie, cookie);
    const queued = [requests.post('b', post), requests.post('c', post)];
    assert.deepEqual([requests.posted, requests.queued, requests.nextCookie], [2, 1, undefined]);
    requests.complete(cookie, 1);
    assert.deepEqual([requests.queued, posted.at(-1), released], [0, cookie, [true]]);
    for (const each of posted.splice(0)) requests.complete(each, 2);
    assert.deepEqual(await Promise.all([tracked, ...queued]), [1, 2, 2]);
    requests.end(ended);
    assert.equal(requests.nextCookie, undefined);
  });

  it('of which one is tracked may end early, and keep their slot', async () => {
    const { world, requests, released } = new Scene(1);
    const cookie = requests.nextCookie as number;
    const held: Held = { release: (isWanted) => void released.push(isWanted) };
    const late = failureOf(requests.track('send', held, { timeoutMs: 1 }));
    await world.run();
    assert.equal((await late).code, 'DAT_TIMEOUT_EXPIRED');
    assert.deepEqual([requests.posted, released], [1, []]);
    requests.complete(cookie, 0);
    assert.deepEqual([requests.posted, released], [0, [false]]);
  });

  it('keep their slot and memory until they complete, when the wait has left', async () => {
    const { world, requests, post, posted, released } = new Scene(1);
    const late = failureOf(requests.post('write', post, { timeoutMs: 1 }));
    await world.run();
    const error = await late;
    assert.equal(error.code, 'DAT_TIMEOUT_EXPIRED');
    assert.match(error.message, /it has been posted, and may take effect/);
    assert.deepEqual([requests.posted, released.length], [1, 0]);
    const next = requests.post('next', post);
    assert.equal(requests.queued, 1);
    requests.complete(posted[0] as number, 1);
    assert.deepEqual(released, [false]);
    requests.complete(posted[1] as number, 2);
    assert.equal(await next, 2);
  });

  it('are never posted when they leave before there is a slot', async () => {
    const { requests, post, posted } = new Scene(1);
    const abort = new AbortController();
    const first = requests.post('a', post);
    const left = failureOf(requests.post('b', post, { signal: abort.signal }));
    const last = requests.post('c', post);
    abort.abort();
    assert.match((await left).message, /it has not been posted, and has no effect/);
    requests.complete(posted[0] as number, 1);
    requests.complete(posted[1] as number, 3);
    assert.deepEqual(await Promise.all([first, last]), [1, 3]);
    assert.equal(posted.length, 2);
  });

  it('give their slot back when the post throws', async () => {
    const { requests, post, posted } = new Scene(1);
    const failing = failureOf(
      requests.post('a', () => {
        throw new RangeError('no');
      }),
    );
    assert.equal((await failing).code, 'DAT_INTERNAL_ERROR');
    const next = requests.post('b', post);
    requests.complete(posted[0] as number, 4);
    assert.equal(await next, 4);
  });

  it('fail one by one, or all with their queue', async () => {
    const { requests, post, posted, released } = new Scene(2);
    const [one, two, queued] = ['a', 'b', 'c'].map((name) => failureOf(requests.post(name, post)));
    requests.fail(posted[0] as number, ended('a'));
    requests.end(ended);
    const errors = await Promise.all([one, two, queued]);
    assert.deepEqual(
      errors.map((error) => error?.operation),
      ['a', 'b', 'c'],
    );
    assert.deepEqual(released, [false, false, false]);
    assert.equal((await failureOf(requests.post('d', post))).code, 'DAT_CONN_BROKEN');
    assert.deepEqual([requests.posted, requests.queued, posted.length], [0, 0, 3]);
  });

  it('complete once: another completion is a mistake', () => {
    const { requests, post, posted } = new Scene(1);
    void requests.post('a', post);
    requests.complete(posted[0] as number, 1);
    assert.throws(() => requests.complete(posted[0] as number, 1), /has been posted/);
  });

  it('are limited to a number that can be', () => {
    assert.throws(() => new Scene(0), {
      code: 'DAT_INVALID_PARAMETER',
      message: /limit is 0; it must be an integer from 1 to 1048576/,
    });
  });
});
