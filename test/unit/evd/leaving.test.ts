import assert from 'node:assert/strict';
import fc from 'fast-check';
import { concatMap, from, lastValueFrom, mergeAll, take, toArray } from 'rxjs';
import { type DatEvent, type Evd, EventBatch } from '../../../core/evd/index.js';
import { type FakeHost, label, settle } from './fake-host.js';
import { ALL, drain, setUp } from './set-up.js';

/** Takes `count` events, which wait, and leaves; answers with what it has taken. */
type Taker = (evd: Evd, count: number, host: FakeHost) => Promise<unknown[]>;

class Enough extends Error {}

async function iterate(
  evd: Evd,
  read: (batch: readonly DatEvent[], got: unknown[]) => 'on' | 'break',
): Promise<unknown[]> {
  const got: unknown[] = [];
  for await (const batch of evd) if (read(batch, got) === 'break') break;
  return got;
}

async function throughUpcalls(
  evd: Evd,
  count: number,
  host: FakeHost,
  policy: 'ONE' | 'MANY',
): Promise<unknown[]> {
  const got: unknown[] = [];
  evd.modifyUpcall(policy, (event, upcall) => {
    got.push(label(event));
    if (got.length === count) void upcall.teardown();
  });
  host.run();
  await settle();
  return got;
}

const TAKERS: Readonly<Record<string, Taker>> = {
  dequeue: (evd, count) =>
    Promise.resolve(Array.from({ length: count }, () => label(evd.dequeue()))),
  dequeueInto: (evd, count) => {
    const batch = new EventBatch(16);
    const taken = evd.dequeueInto(batch, count);
    const labels = Array.from({ length: taken }, (_, i) => {
      const event = batch.events[i];
      return event === undefined ? batch.cookies[i] : label(event);
    });
    return Promise.resolve(labels);
  },
  wait: async (evd, count) => {
    const got: unknown[] = [];
    while (got.length < count) got.push(label((await evd.wait()).event));
    return got;
  },
  'break in a loop over the batch': async (evd, count) => {
    const got: unknown[] = [];
    batches: for await (const batch of evd) {
      for (const event of batch) {
        got.push(label(event));
        if (got.length === count) break batches;
      }
    }
    return got;
  },
  'break in a loop over indices': (evd, count) =>
    iterate(evd, (batch, got) => {
      for (let i = 0; i < batch.length; i++) {
        got.push(label(batch[i]));
        if (got.length === count) return 'break';
      }
      return 'on';
    }),
  'break after find': (evd, count) =>
    iterate(evd, (batch, got) => {
      const found = batch.find((event) => got.push(label(event)) === count);
      return found === undefined ? 'on' : 'break';
    }),
  throw: async (evd, count) => {
    const got: unknown[] = [];
    const loop = iterate(evd, (batch) => {
      for (const event of batch) if (got.push(label(event)) === count) throw new Enough();
      return 'on';
    });
    await assert.rejects(loop, Enough);
    return got;
  },
  'return of the whole batch': async (evd) => {
    const next = async (): Promise<readonly DatEvent[]> => {
      for await (const batch of evd) if (batch.length > 0) return batch;
      return [];
    };
    return (await next()).map(label);
  },
  'break without a look': (evd) => iterate(evd, () => 'break'),
  'break after a look at the length': (evd) =>
    iterate(evd, (batch) => (batch.length > 0 ? 'break' : 'on')),
  'an iterator that is asked once and left': async (evd) => {
    const iterator = evd[Symbol.asyncIterator]();
    await iterator.next();
    await iterator.return();
    return [];
  },
  'take behind mergeAll': async (evd, count) => {
    const events = await lastValueFrom(from(evd).pipe(mergeAll(), take(count), toArray()));
    return events.map(label);
  },
  'take behind concatMap': async (evd, count) => {
    const events$ = from(evd).pipe(
      concatMap((batch) => from(batch)),
      take(count),
      toArray(),
    );
    return (await lastValueFrom(events$)).map(label);
  },
  'take of events$': async (evd, count, host) => {
    const got: unknown[] = [];
    evd.events$.pipe(take(count)).subscribe((event) => got.push(label(event)));
    host.run();
    return Promise.resolve(got);
  },
  'unsubscribing in the handler': async (evd, count, host) => {
    const got: unknown[] = [];
    const subscription = evd.events$.subscribe((event) => {
      if (got.push(label(event)) === count) subscription.unsubscribe();
    });
    host.run();
    return Promise.resolve(got);
  },
  'an upcall that tears down (ONE)': (evd, count, host) => throughUpcalls(evd, count, host, 'ONE'),
  'an upcall that tears down (MANY)': (evd, count, host) =>
    throughUpcalls(evd, count, host, 'MANY'),
  'an upcall that dequeues (NOTIFY)': async (evd, count, host) => {
    const got: unknown[] = [];
    evd.modifyUpcall('NOTIFY', (_, upcall) => {
      while (got.length < count) got.push(label(evd.dequeue()));
      void upcall.teardown();
    });
    host.run();
    await settle();
    return got;
  },
};

const NAMES = Object.keys(TAKERS);

/** Events arrive, takers take some and leave: each event goes to one taker, in order. */
async function everyEventOnce(
  steps: readonly {
    readonly arrive: readonly boolean[];
    readonly taker: string;
    readonly count: number;
  }[],
): Promise<void> {
  const { host, evd } = setUp({ qlen: 64, streams: ALL });
  const ep = host.endpoint();
  let posted = 0;
  const got: unknown[] = [];
  for (const { arrive, taker, count } of steps) {
    for (const isCompletion of arrive) {
      if (isCompletion) host.cq.add({ context: ep.context, cookie: posted });
      else evd.postSe(posted);
      posted++;
    }
    const waiting = evd.query().pending;
    assert.equal(waiting, posted - got.length, `${taker}: some are lost or doubled`);
    if (waiting === 0) continue;
    got.push(...(await TAKERS[taker]!(evd, Math.min(count, waiting), host)));
    host.run();
    assert.equal(evd.query().taker, 'none', `${taker} is still there`);
  }
  got.push(...drain(evd));
  assert.deepEqual(
    got,
    Array.from({ length: posted }, (_, i) => i),
  );
  await evd.free();
}

describe('evd: takers that leave', () => {
  for (const first of NAMES) {
    it(`${first}: what it has not taken stays, in order, for each other taker`, async () => {
      for (const second of NAMES) {
        const arrive = [true, true, false, true, false];
        await everyEventOnce([
          { arrive, taker: first, count: 2 },
          { arrive: [], taker: second, count: 1 },
          { arrive, taker: first, count: 3 },
          { arrive: [], taker: second, count: 8 },
        ]);
      }
    });
  }

  it('in any order, each event goes to one taker, and the order is kept', async () => {
    const step = fc.record({
      arrive: fc.array(fc.boolean(), { maxLength: 4 }),
      taker: fc.constantFrom(...NAMES),
      count: fc.integer({ min: 1, max: 5 }),
    });
    const run = fc.asyncProperty(fc.array(step, { maxLength: 12 }), everyEventOnce);
    await fc.assert(run, { numRuns: 300 });
  });

  it('a waiter with a threshold, and a CNO, count what has been put back', async () => {
    const { host, evd } = setUp();
    for (const payload of [0, 1, 2]) evd.postSe(payload);
    await iterate(evd, (batch) => (label(batch[0]) === 0 ? 'break' : 'on'));
    const { event, nmore } = await evd.wait({ threshold: 2, timeoutMs: 0 });
    assert.deepEqual([label(event), nmore], [1, 1]);
    host.run();
    assert.deepEqual(drain(evd), [2]);
  });

  it('a batch read after its loop is whole, or empty when another has begun on it', async () => {
    for (const isTaken of [false, true]) {
      const { evd } = setUp();
      for (const payload of [0, 1]) evd.postSe(payload);
      let last: readonly DatEvent[] = [];
      for await (const batch of evd) {
        last = batch;
        break;
      }
      const first = isTaken ? [label(evd.dequeue())] : [];
      assert.equal(last.length, isTaken ? 0 : 2);
      assert.deepEqual([...first, ...last.map(label), ...drain(evd)], [0, 1]);
    }
  });

  it('a batch is its reader’s once the loop has gone on, and when the EVD is freed', async () => {
    const { evd } = setUp();
    evd.postSe(0);
    const batches: (readonly DatEvent[])[] = [];
    for await (const batch of evd) {
      batches.push(batch);
      if (batches.length === 1) evd.postSe(1);
      else await evd.free();
    }
    assert.deepEqual(batches.flat().map(label), [0, 1]);
    assert.deepEqual(batches.map(Array.isArray), [true, true]);
  });
});
