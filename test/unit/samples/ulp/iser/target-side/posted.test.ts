// Requests of an endpoint: those that nothing waits for are told of by a later one, in order.
import assert from 'node:assert/strict';

import { PostedRequests } from '../../../../../../samples/ulp/iser/mover/target-side/iser-mover.js';

describe('iSER target: posted requests', () => {
  const LIMIT = 16;
  let requests: PostedRequests;
  /** By cookie: whether its success makes a completion. */
  let told: boolean[];
  let log: string[];

  beforeEach(() => {
    requests = new PostedRequests(LIMIT);
    told = [];
    log = [];
  });

  const post = (name: string, isAwaited = false): void =>
    requests.post(
      (cookie, isTold) => {
        assert.equal(cookie, told.length);
        told.push(isTold);
      },
      (error) => log.push(error === undefined ? name : `${name}: ${error.message}`),
      isAwaited,
    );
  const postMany = (count: number): void => {
    for (let i = 0; i < count; i++) post(String(told.length));
  };

  it('asks for a completion of each eighth, and of what is waited for', () => {
    postMany(8);
    assert.deepEqual(told, [...new Array<boolean>(7).fill(false), true]);
    post('read', true);
    assert.equal(told[8], true);
    postMany(7);
    assert.deepEqual(told.slice(9), new Array(7).fill(false), 'counted from the last that tells');
  });

  it('is told by one completion of all before it', () => {
    postMany(3);
    post('read', true);
    postMany(1);
    requests.complete(3);
    assert.deepEqual(log, ['0', '1', '2', 'read']);
  });

  it('gives an error to the request that failed, not to those before it', () => {
    postMany(2);
    post('read', true);
    requests.complete(2, new Error('no access'));
    assert.deepEqual(log, ['0', '1', 'read: no access']);
  });

  it('is idle when no completion is to come', () => {
    assert.ok(requests.isIdle);
    postMany(3);
    assert.ok(requests.isIdle, 'none of these is told of');
    post('last', true);
    assert.ok(!requests.isIdle);
    requests.complete(3);
    assert.ok(requests.isIdle);
  });

  it('keeps what is too much, and posts it in order', () => {
    postMany(LIMIT);
    post('late');
    post('later');
    assert.equal(told.length, LIMIT);
    assert.ok(!requests.isIdle);
    requests.complete(7);
    assert.equal(told.length, LIMIT + 2);
    requests.complete(15);
    postMany(6);
    assert.equal(told.lastIndexOf(true), 23);
    requests.complete(23);
    assert.deepEqual(log.slice(16), ['late', 'later', '18', '19', '20', '21', '22', '23']);
  });

  it('hears of the end once, in order, whatever it was told before', async () => {
    postMany(LIMIT);
    post('waiting');
    requests.complete(7);
    log.length = 0;
    requests.end(new Error('gone'));
    requests.end(new Error('again'));
    assert.deepEqual(log.slice(0, 2), ['8: gone', '9: gone']);
    assert.equal(log.at(-1), 'waiting: gone');
    assert.equal(log.length, 9);
    post('afterwards', true);
    assert.equal(told.length, LIMIT + 1, 'nothing is posted');
    await Promise.resolve();
    assert.equal(log.at(-1), 'afterwards: gone');
  });

  it('tells a request that cannot be posted, and goes on', async () => {
    requests.post(
      () => {
        throw new Error('not connected');
      },
      (error) => log.push(String(error?.message)),
      true,
    );
    assert.deepEqual(log, [], 'not while it is posted');
    await Promise.resolve();
    assert.deepEqual(log, ['not connected']);
    assert.ok(requests.isIdle);
    postMany(1);
    assert.deepEqual(told, [false]);
  });
});
