// Smaller questions of the review of August 2005 (openib-general, "evd upcall policy").

import assert from 'node:assert/strict';
import { Evd } from '../../../core/evd/index.js';
import { WcStatus } from '../../../core/spi/index.js';
import { FakeHost, label } from './fake-host.js';
import { ALL, drain, setUp } from './set-up.js';

describe('evd: what the review of August 2005 asks', () => {
  it('at creation the CQ is armed if upcalls are wanted, and not otherwise', () => {
    for (const policy of ['ONE', 'NOTIFY', 'MANY'] as const) {
      const { host } = setUp({ policy, handler: () => undefined });
      host.run();
      assert.deepEqual([policy, host.cq.armed], [policy, 'next']);
    }
    const { host, evd } = setUp({ policy: 'DISABLE', handler: () => undefined });
    host.run();
    assert.deepEqual([host.cq.armed, host.cq.arms], ['none', 0]);
    assert.equal(evd.query().policy, 'DISABLE');
    const plain = setUp();
    plain.host.run();
    assert.deepEqual([plain.evd.query().policy, plain.host.cq.arms], ['DISABLE', 0]);
  });

  it('enabling arms the CQ that a disable has left unarmed', () => {
    const got: unknown[] = [];
    const { host, evd } = setUp({ policy: 'ONE', handler: (event) => void got.push(label(event)) });
    const ep = host.endpoint();
    evd.modifyUpcall('DISABLE');
    host.cq.add({ context: ep.context, cookie: 1 });
    host.run();
    assert.deepEqual([host.cq.armed, drain(evd)], ['none', [1]]);
    evd.modifyUpcall('ONE');
    host.run();
    assert.equal(host.cq.armed, 'next');
    host.cq.add({ context: ep.context, cookie: 2 });
    host.run();
    assert.deepEqual(got, [2]);
  });

  it('a policy that nobody changes stays on, although the CQ notifies once an arm', () => {
    const got: unknown[] = [];
    const { host, evd } = setUp({ policy: 'ONE', handler: (event) => void got.push(label(event)) });
    const ep = host.endpoint();
    for (let cookie = 1; cookie <= 5; cookie++) {
      host.cq.add({ context: ep.context, cookie });
      host.run();
      assert.equal(host.cq.armed, 'next');
    }
    assert.deepEqual(got, [1, 2, 3, 4, 5]);
    assert.equal(evd.query().policy, 'ONE');
  });

  it('disabled by its own upcall: no second upcall, the CQ not armed, the rest is dequeued', () => {
    const host = new FakeHost();
    const got: unknown[] = [];
    const evd = new Evd(host, { id: 1, qlen: 8, streams: ALL });
    const ep = host.endpoint();
    let arms = 0;
    evd.modifyUpcall('ONE', (event) => {
      got.push(label(event));
      evd.modifyUpcall('DISABLE');
      arms = host.cq.arms;
      host.cq.add({ context: ep.context, cookie: 3 });
    });
    for (const cookie of [1, 2]) host.cq.add({ context: ep.context, cookie });
    host.run();
    assert.deepEqual([got, host.cq.arms], [[1], arms]);
    assert.deepEqual(drain(evd), [2, 3]);
  });

  it('a failed completion that an upcall dequeues does not call the upcall again inside', () => {
    const host = new FakeHost();
    const got: unknown[] = [];
    const evd = new Evd(host, { id: 1, qlen: 8, streams: ALL });
    const ep = host.endpoint();
    // What the endpoint does when it breaks: an event of its own, on the same EVD.
    ep.onEach = (cookie, status) => {
      if (status !== WcStatus.SUCCESS) evd.postSe(`broken by ${cookie}`);
    };
    let depth = 0;
    evd.modifyUpcall('MANY', (event) => {
      assert.equal(++depth, 1, 'an upcall inside an upcall');
      got.push(label(event));
      if (got.length === 1) {
        const status = WcStatus.REM_ACCESS_ERR;
        host.cq.add({ context: ep.context, cookie: 9, status });
        got.push(label(evd.dequeue()));
      }
      depth--;
    });
    evd.postSe('first');
    host.run();
    assert.deepEqual(got, ['first', 'broken by 9', 9]);
  });

  it('a handler may be set while upcalls are disabled and while they are not', () => {
    const { host, evd } = setUp();
    const got: unknown[] = [];
    const handler = (name: string) => (event: unknown) =>
      void got.push([name, label(event as never)]);
    evd.modifyUpcall('DISABLE', handler('while disabled'));
    evd.postSe(1);
    host.run();
    assert.deepEqual(got, []);
    evd.modifyUpcall('ONE');
    host.run();
    evd.postSe(2);
    evd.modifyUpcall('ONE', handler('while enabled'));
    host.run();
    assert.deepEqual(got, [
      ['while disabled', 1],
      ['while enabled', 2],
    ]);
  });
});
