/** Completions find the endpoint that they belong to, never the next tenant of its place. */
import assert from 'node:assert/strict';
import type { Ep } from '../../../core/dat/index.js';
import {
  type CompletionOwner,
  CompletionOwners,
  type CompletionView,
  type DatEvent,
  DatEventNumber,
  EventBatch,
} from '../../../core/evd/index.js';
import { CQE } from '../../../core/spi/index.js';
import type { FakeHost } from './fake-host.js';
import { connection, dat, drain, setUp } from './set-up.js';

const SLOTS = 2 ** 20;
const GENERATIONS = 2 ** 12 - 1;

function owner(
  view: CompletionView = true,
  onEach: () => unknown = () => undefined,
): CompletionOwner & { readonly seen: number[] } {
  const seen: number[] = [];
  const cookieOf = (words: Uint32Array, at: number): number => words[at + CQE.COOKIE_LO] ?? 0;
  return {
    seen,
    onCompletion: (words, at) => {
      seen.push(cookieOf(words, at));
      onEach();
      return view;
    },
    toEvent: (words, at): DatEvent => ({
      type: 'dto',
      number: DatEventNumber.DTO_COMPLETION,
      ep: {} as Ep,
      cookie: cookieOf(words, at),
      status: 0,
      transferredLength: 0,
      operation: 0,
    }),
  };
}

/** A completion of a receive that came from a shared queue. */
function addShared(host: FakeHost, context: number, srqn: number, cookie: number): void {
  const { ring } = host.cq;
  const at = ring.wordOf(ring.producer);
  host.cq.add({ context, cookie });
  ring.words[at + CQE.SRQN] = srqn;
}

describe('evd: owners of completions', () => {
  it('each has a context of its own, that is not 0 and 32 bits long', () => {
    const owners = new CompletionOwners();
    const all = Array.from({ length: 5 }, () => owner());
    const contexts = all.map((one) => owners.allocate(one));
    assert.equal(new Set(contexts).size, 5);
    for (const context of contexts) assert.ok(context > 0 && context < 2 ** 32, String(context));
    assert.deepEqual(
      contexts.map((context) => owners.lookup(context)),
      all,
    );
    assert.equal(owners.size, 5);
  });

  it('a context comes again only when its place has had 4095 tenants', () => {
    const owners = new CompletionOwners();
    const first = owners.allocate(owner());
    let present = first;
    const contexts = new Set([first]);
    for (let i = 1; i < GENERATIONS; i++) {
      owners.free(present);
      assert.equal(owners.lookup(present), undefined);
      const next = owner();
      present = owners.allocate(next);
      assert.equal(owners.lookup(present), next);
      assert.ok(present > 0 && present < 2 ** 32, String(present));
      contexts.add(present);
      if (i < GENERATIONS - 1) assert.equal(owners.lookup(first), undefined);
    }
    assert.equal(contexts.size, GENERATIONS);
    assert.equal(owners.size, 1);
    owners.free(present);
    assert.equal(owners.allocate(owner()), first);
  });

  it('the place that has been free for longest is used next', () => {
    const owners = new CompletionOwners();
    const [a, b] = [owners.allocate(owner()), owners.allocate(owner())];
    owners.free(b);
    owners.free(a);
    const slot = (context: number): number => context % SLOTS;
    assert.equal(slot(owners.allocate(owner())), slot(b));
    assert.equal(slot(owners.allocate(owner())), slot(a));
    assert.equal(owners.size, 2);
  });

  it('freeing twice, or what is not there, or the former tenant’s context, does nothing', () => {
    const owners = new CompletionOwners();
    const gone = owners.allocate(owner());
    owners.free(gone);
    owners.free(gone);
    owners.free(12_345);
    assert.equal(owners.size, 0);
    const tenant = owner();
    const context = owners.allocate(tenant);
    owners.free(gone);
    assert.equal(owners.lookup(context), tenant);
    assert.notEqual(owners.allocate(owner()), context);
    assert.equal(owners.size, 2);
  });

  it('beyond 2^20 there is no room, until one is freed', () => {
    const owners = new CompletionOwners();
    const one = owner();
    let last = 0;
    for (let i = 0; i < SLOTS; i++) last = owners.allocate(one);
    assert.equal(owners.size, SLOTS);
    assert.throws(
      () => owners.allocate(one),
      dat('DAT_INSUFFICIENT_RESOURCES', 'DAT_RESOURCE_TEP'),
    );
    assert.equal(owners.lookup(last), one);
    owners.free(last);
    const again = owners.allocate(one);
    assert.equal(again % SLOTS, SLOTS - 1);
    assert.notEqual(again, last);
  });

  it('another owner of the same context gets what comes from then on', () => {
    const { host, evd } = setUp();
    const [first, second] = [owner(), owner()];
    const context = host.owners.allocate(first);
    host.cq.add({ context, cookie: 1 });
    evd.feed.scan();
    host.owners.replace(context, second);
    host.cq.add({ context, cookie: 2 });
    assert.deepEqual(drain(evd), [1, 2]);
    assert.deepEqual([first.seen, second.seen], [[1], [2]]);
  });
});

describe('evd: completions of shared receive queues', () => {
  const SRQN = 0x31;

  it('go to their queue pair; to the shared queue where that is gone or of another process', () => {
    const { host, evd } = setUp();
    const [endpoint, shared] = [owner(), owner()];
    const context = host.owners.allocate(endpoint);
    host.owners.addShared(SRQN, shared);
    addShared(host, context, SRQN, 1);
    addShared(host, 0, SRQN, 2);
    addShared(host, 0, SRQN + 1, 3);
    assert.deepEqual(drain(evd), [1, 2]);
    host.owners.free(context);
    addShared(host, context, SRQN, 4);
    assert.deepEqual(drain(evd), [4]);
    host.owners.removeShared(SRQN);
    addShared(host, context, SRQN, 5);
    assert.deepEqual(drain(evd), []);
    assert.deepEqual([endpoint.seen, shared.seen], [[1], [2, 4]]);
    assert.equal(evd.query().dropped, 2);
  });

  it('are purged by the number of the queue, and no others with them', () => {
    const { host, evd } = setUp();
    const endpoint = host.endpoint();
    for (const srqn of [SRQN, SRQN + 1]) host.owners.addShared(srqn, owner());
    addShared(host, 0, SRQN, 1);
    addShared(host, 0, SRQN + 1, 2);
    addShared(host, endpoint.context, SRQN, 3);
    addShared(host, 0, SRQN, 4);
    evd.feed.purge(0, SRQN);
    assert.equal(evd.query().pending, 2);
    assert.equal(evd.query().dropped, 2);
    evd.feed.purge(0, SRQN);
    assert.equal(evd.query().dropped, 2, 'counted once');
    assert.deepEqual(drain(evd), [2, 3]);
    assert.equal(host.cq.ring.length, 0);
  });
});

describe('evd: completions that leave no trace', () => {
  it('keep their entry while an event stands behind them, so that it stays in order', () => {
    const { host, evd } = setUp();
    const posted = connection(DatEventNumber.BROKEN);
    let place: 'after' | 'behind' | undefined;
    const probe = owner('absent', () => {
      if (place !== undefined) evd.feed.post(posted, place);
      place = undefined;
    });
    const context = host.owners.allocate(probe);
    const ep = host.endpoint();
    for (const each of ['after', 'behind'] as const) {
      place = each;
      host.cq.add({ context: ep.context, cookie: 1 });
      host.cq.add({ context, cookie: 2 });
      host.cq.add({ context, cookie: 3 });
      host.cq.add({ context: ep.context, cookie: 4 });
      assert.equal(evd.feed.scan(), 2);
      assert.equal(evd.query().pending, 3);
      assert.deepEqual(drain(evd), [1, DatEventNumber.BROKEN, 4]);
      assert.equal(host.cq.ring.length, 0);
    }
    assert.deepEqual(probe.seen, [2, 3, 2, 3]);
  });

  it('hold no entry of the ring behind events that are not taken', () => {
    const { host, evd } = setUp({ qlen: 4 });
    const context = host.owners.allocate(owner('absent'));
    const ep = host.endpoint();
    for (const cookie of [1, 2]) host.cq.add({ context: ep.context, cookie });
    assert.equal(evd.feed.scan(), 2);
    for (let i = 0; i < 20; i++) {
      host.cq.add({ context, cookie: 100 + i });
      assert.equal(evd.feed.scan(), 0);
      assert.equal(host.cq.ring.length, 2);
    }
    host.cq.add({ context: ep.context, cookie: 3 });
    const batch = new EventBatch(8);
    assert.equal(evd.dequeueInto(batch), 3);
    assert.deepEqual([...batch.cookies.subarray(0, 3)], [1, 2, 3]);
  });

  it('hold none either when a former one had an event behind it', () => {
    const { host, evd } = setUp();
    let posts = true;
    const probe = owner('absent', () => {
      if (posts) evd.feed.post(connection(DatEventNumber.BROKEN), 'after');
      posts = false;
    });
    const context = host.owners.allocate(probe);
    host.cq.add({ context: host.endpoint().context, cookie: 1 });
    host.cq.add({ context, cookie: 2 });
    evd.feed.scan();
    const { length } = host.cq.ring;
    host.cq.add({ context, cookie: 3 });
    evd.feed.scan();
    assert.equal(host.cq.ring.length, length);
    assert.deepEqual(drain(evd), [1, DatEventNumber.BROKEN]);
  });

  it('nor when an event has been put in front of them', () => {
    const { host, evd } = setUp();
    const probe = owner('absent', () => evd.feed.post(connection(DatEventNumber.BROKEN)));
    const context = host.owners.allocate(probe);
    host.cq.add({ context: host.endpoint().context, cookie: 1 });
    host.cq.add({ context, cookie: 2 });
    evd.feed.scan();
    assert.equal(host.cq.ring.length, 1);
    assert.deepEqual(drain(evd), [1, DatEventNumber.BROKEN]);
  });

  it('are looked at again when an owner has failed in the middle', () => {
    const { host, evd } = setUp();
    const ep = host.endpoint();
    let fails = true;
    ep.onEach = (cookie) => {
      if (cookie === 2 && fails) throw new Error('the endpoint fails');
    };
    for (const cookie of [1, 2, 3]) host.cq.add({ context: ep.context, cookie });
    assert.equal(evd.feed.scan(), 0);
    assert.equal(host.async.length, 1);
    fails = false;
    assert.equal(evd.feed.scan(), 2);
    assert.deepEqual(ep.seen, [1, 2, 2, 3]);
    assert.deepEqual(drain(evd), [1, 2, 3]);
  });
});
