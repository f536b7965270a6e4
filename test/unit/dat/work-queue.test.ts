import assert from 'node:assert/strict';
import type { Lmr, Pz } from '../../../core/index.js';
import { SEND_ENTRY, EntryFlag } from '../../../core/dat/work/entry-ring.js';
import { WorkQueue } from '../../../core/dat/work/queue-set.js';
import { Ring, SQE, WrFlags, WrOpcode, sqeBytes } from '../../../core/spi/index.js';
import { openFake } from '../../support/fake-provider.js';

const CONTROL = WrOpcode.SEND | (WrFlags.SIGNALED << 8);

async function regions(): Promise<{ pz: Pz; a: Lmr; b: Lmr; c: Lmr }> {
  const { ia } = await openFake();
  const pz = ia.createPz();
  const make = (): Lmr => ia.allocate(64, { pz });
  return { pz, a: make(), b: make(), c: make() };
}

function queue(entries = 8): WorkQueue {
  return new WorkQueue(Ring.allocate(entries, sqeBytes(3)), entries, 3, SEND_ENTRY);
}

function post(to: WorkQueue, lmrs: readonly Lmr[], flags: number = EntryFlag.SIGNALLED): number {
  const index = to.producer;
  const count = to.putSegments(lmrs.map((lmr) => lmr.segment(0, 64)));
  to.ring.words[to.nextWord + SQE.CONTROL] = CONTROL | (count << 16);
  to.commit(flags);
  return index;
}

const pins = (...lmrs: readonly Lmr[]): number[] => lmrs.map((lmr) => lmr.inFlight);

describe('work queue', () => {
  it('notes flags in the entry, where no provider looks', async () => {
    const { a } = await regions();
    const sends = queue();
    const all =
      EntryFlag.HIDDEN |
      EntryFlag.SIGNALLED |
      EntryFlag.MARKER |
      EntryFlag.QUIET |
      EntryFlag.IMMEDIATE;
    for (const flags of [0, EntryFlag.HIDDEN, EntryFlag.SIGNALLED, all]) {
      const index = post(sends, [a], flags);
      const control = sends.ring.words[sends.ring.wordOf(index) + SQE.CONTROL]!;
      assert.equal(control & 0xffffff, CONTROL | (1 << 16));
      assert.equal(sends.flagsOf(index), flags);
    }
  });

  it('pins regions until their entries are reclaimed, however they are mixed', async () => {
    const { a, b, c } = await regions();
    const sends = queue();
    post(sends, [a]);
    post(sends, [a]);
    assert.deepEqual(pins(a, b, c), [2, 0, 0]);
    const mixed = post(sends, [b, c, a]);
    post(sends, []);
    const last = post(sends, [a, b]);
    assert.deepEqual(pins(a, b, c), [4, 2, 1]);
    assert.equal(sends.widest, 3);
    sends.reclaimThrough(mixed);
    assert.deepEqual(pins(a, b, c), [1, 1, 0]);
    sends.reclaimThrough(last);
    assert.deepEqual(pins(a, b, c), [0, 0, 0]);
    post(sends, [c]);
    assert.deepEqual(pins(a, b, c), [0, 0, 1]);
    sends.discard();
    assert.deepEqual([...pins(a, b, c), sends.outstanding], [0, 0, 0, 0]);
  });

  it('takes another region when the queue has run empty', async () => {
    const { a, b } = await regions();
    const sends = queue();
    for (let i = 0; i < 20; i++) {
      const lmr = i % 2 === 0 ? a : b;
      const index = post(sends, [lmr]);
      assert.deepEqual(pins(a, b), i % 2 === 0 ? [1, 0] : [0, 1]);
      sends.reclaimThrough(index);
    }
    assert.deepEqual(pins(a, b), [0, 0]);
  });

  it('moves with flags and pins', async () => {
    const { a, b, c } = await regions();
    const [from, to] = [queue(), queue(16)];
    from.reclaimThrough(post(from, [c]));
    post(from, [a], EntryFlag.HIDDEN);
    post(from, [b, c], EntryFlag.SIGNALLED);
    from.moveTo(to);
    assert.equal(from.outstanding, 0);
    assert.deepEqual(
      [to.flagsOf(0), to.flagsOf(1), to.widest],
      [EntryFlag.HIDDEN, EntryFlag.SIGNALLED, 2],
    );
    assert.deepEqual(pins(a, b, c), [1, 1, 1]);
    to.reclaimThrough(1);
    assert.deepEqual(pins(a, b, c), [0, 0, 0]);
  });

  it('lets go of everything when its ring is gone', async () => {
    const { a, b, c } = await regions();
    for (const lists of [
      [[a], [a]],
      [[a], [b], [c, a, b]],
    ]) {
      const sends = queue();
      for (const lmrs of lists) post(sends, lmrs);
      sends.ring.end();
      sends.discard();
      assert.deepEqual([...pins(a, b, c), sends.outstanding], [0, 0, 0, 0]);
    }
  });
});
