/** What counts as reading a batch, and what becomes of the rest when its loop is left. */
import assert from 'node:assert/strict';
import type { DatEvent, Evd } from '../../../core/evd/index.js';
import { label } from './fake-host.js';
import { drain, setUp } from './set-up.js';

type Batch = readonly DatEvent[];

/** Three events; the loop looks at its batch in some way, and is left. */
async function leftAfter(look: (batch: Batch) => unknown): Promise<{ evd: Evd; batch: Batch }> {
  const { evd } = setUp();
  for (const payload of [0, 1, 2]) evd.postSe(payload);
  for await (const batch of evd) {
    look(batch);
    return { evd, batch };
  }
  throw new Error('no batch');
}

const NOTHING: Readonly<Record<string, (batch: Batch) => unknown>> = {
  'its length': (batch) => batch.length,
  'an index behind the end': (batch) => batch[3],
  'an index far behind the end': (batch) => batch[99],
  'an index in front of it': (batch) => batch[-1],
  'an index between two': (batch) => (batch as unknown as Record<string, unknown>)['0.5'],
  'a symbol of its own': (batch) =>
    (batch as unknown as Record<symbol, unknown>)[Symbol.toStringTag],
  'an iterator that is not asked': (batch) => batch[Symbol.iterator](),
  'whether it is an array': (batch) => Array.isArray(batch),
};
const SOME: Readonly<Record<string, readonly [look: (batch: Batch) => unknown, read: number]>> = {
  'the first by index': [(batch) => batch[0], 1],
  'the second by index': [(batch) => batch[1], 2],
  'the second, then the first': [(batch) => [batch[1], batch[0]], 2],
  'the last by index': [(batch) => batch[2], 3],
  'the last by `at`': [(batch) => batch.at(-1), 3],
  'one by an iterator': [(batch) => batch[Symbol.iterator]().next(), 1],
  'one by an iterator of an iterator': [
    (batch) => {
      const reader = batch[Symbol.iterator]();
      assert.equal(reader[Symbol.iterator](), reader);
      return reader[Symbol.iterator]().next();
    },
    1,
  ],
  'all, by spreading': [(batch) => [...batch], 3],
  'all, by `map`': [(batch) => batch.map(label), 3],
};

describe('evd: a batch whose loop is left', () => {
  for (const [what, look] of Object.entries(NOTHING)) {
    it(`stays in the EVD after a look at ${what}`, async () => {
      const { evd } = await leftAfter(look);
      assert.deepEqual(drain(evd), [0, 1, 2]);
    });

    it(`stays in the EVD when ${what} is looked at later`, async () => {
      const { evd, batch } = await leftAfter(() => undefined);
      look(batch);
      assert.equal(evd.query().pending, 3);
      assert.deepEqual(drain(evd), [0, 1, 2]);
      assert.equal(batch.length, 0, 'and is empty when the EVD has handed it to another');
      assert.equal(batch[0], undefined);
      assert.deepEqual([...batch], []);
    });
  }

  for (const [what, [look, read]] of Object.entries(SOME)) {
    it(`has been read up to ${what}; the rest stays in the EVD`, async () => {
      const { evd, batch } = await leftAfter(look);
      assert.equal(evd.query().pending, 3 - read);
      assert.deepEqual(batch.map(label), [0, 1, 2].slice(0, read));
      assert.deepEqual(drain(evd), [0, 1, 2].slice(read));
    });

    it(`is its reader’s when ${what} is read later`, async () => {
      const { evd, batch } = await leftAfter(() => undefined);
      evd.postSe(3);
      look(batch);
      assert.deepEqual(drain(evd), [3]);
      assert.deepEqual(batch.map(label), [0, 1, 2]);
      evd.postSe(4);
      look(batch);
      assert.deepEqual(drain(evd), [4], 'taken once');
    });
  }

  it('is not its reader’s any more when one event of it has been taken', async () => {
    const { evd, batch } = await leftAfter(() => undefined);
    assert.equal(label(evd.dequeue()), 0);
    assert.equal(batch.at(0), undefined);
    assert.equal(batch[Symbol.iterator]().next().done, true);
    assert.deepEqual(drain(evd), [1, 2]);
  });

  it('nor when it is only iterated over, and what it has lost stays where it is', async () => {
    const { evd, batch } = await leftAfter(() => undefined);
    assert.equal(label(evd.dequeue()), 0);
    assert.deepEqual([...batch], []);
    assert.equal(evd.query().pending, 2);
    assert.deepEqual([...batch], []);
    assert.deepEqual(drain(evd), [1, 2]);
  });

  it('is not the reader’s of the first loop when a second one has been left with it', async () => {
    const { evd, batch: first } = await leftAfter(() => undefined);
    let second: Batch = [];
    for await (const batch of evd) {
      second = batch;
      break;
    }
    assert.equal(first[0], undefined);
    assert.equal(evd.query().pending, 3);
    assert.deepEqual(second.map(label), [0, 1, 2]);
    assert.deepEqual(drain(evd), []);
  });

  it('is the reader’s, whole, when the EVD has been freed', async () => {
    const { evd, batch } = await leftAfter(() => undefined);
    await evd.free();
    assert.deepEqual(batch.map(label), [0, 1, 2]);
    assert.deepEqual(batch.map(label), [0, 1, 2], 'and stays so');
  });

  it('that is freed with its EVD in the loop is whole', async () => {
    const { evd } = setUp();
    for (const payload of [0, 1]) evd.postSe(payload);
    let last: Batch = [];
    for await (const batch of evd) {
      last = batch;
      await evd.free();
    }
    assert.deepEqual(last.map(label), [0, 1]);
  });

  it('goes back in front of what has come since', async () => {
    const { evd } = await leftAfter((batch) => batch[0]);
    evd.postSe(3);
    assert.deepEqual(drain(evd), [1, 2, 3]);
  });

  it('of a reader at its end: the reader stays there', async () => {
    const { evd } = setUp();
    evd.postSe(0);
    for await (const batch of evd) {
      const reader = batch[Symbol.iterator]();
      assert.deepEqual([label(reader.next().value), reader.next().done], [0, true]);
      assert.deepEqual(reader.next(), { done: true, value: undefined });
      break;
    }
    assert.deepEqual(drain(evd), []);
  });
});
