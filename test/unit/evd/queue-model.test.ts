/**
 * The one queue of an EVD against a list: completions that are seen, silent, suppressed, absent or
 * of an endpoint that has ended, software events, batches, purges and resizes in any order. The
 * completion ring never holds more than what is still to be looked at or taken.
 */
import assert from 'node:assert/strict';
import fc from 'fast-check';
import type { Ep } from '../../../core/dat/index.js';
import {
  type CompletionOwner,
  type CompletionView,
  type DatEvent,
  DatEventNumber,
  type Evd,
  EventBatch,
} from '../../../core/evd/index.js';
import { CQE } from '../../../core/spi/index.js';
import { label } from './fake-host.js';
import { setUp } from './set-up.js';

const VIEWS: readonly CompletionView[] = [true, 'silent', false, 'absent'];
const ENDPOINTS = 3;
/** Few, so that the ring goes round again and again. */
const QLEN = 4;

/** What becomes of a completion is in its cookie. */
class CodedOwner implements CompletionOwner {
  readonly seen: number[] = [];

  onCompletion(words: Uint32Array, at: number): CompletionView {
    const cookie = words[at + CQE.COOKIE_LO] ?? 0;
    this.seen.push(cookie);
    return VIEWS[cookie % VIEWS.length] ?? false;
  }

  toEvent(words: Uint32Array, at: number): DatEvent {
    const cookie = words[at + CQE.COOKIE_LO] ?? 0;
    const number = DatEventNumber.DTO_COMPLETION;
    const ep = {} as Ep;
    return { type: 'dto', number, ep, cookie, status: 0, transferredLength: 0, operation: 0 };
  }
}

interface Entry {
  readonly label: number;
  /** Number of its endpoint; none of a software event. */
  readonly of: number | undefined;
  isHidden: boolean;
}

/** The list, and the real one beside it. */
class Pair {
  private readonly scene = setUp({ qlen: QLEN });
  private readonly evd: Evd = this.scene.evd;
  private readonly owners = Array.from({ length: ENDPOINTS }, () => new CodedOwner());
  private readonly contexts: readonly number[];
  private readonly ended = new Set<number>();
  private readonly batch = new EventBatch(64);
  /** Completions that have not been looked at. */
  private unseen: Entry[] = [];
  private list: Entry[] = [];
  private qlen = QLEN;
  private dropped = 0;
  private made = 0;

  /** @param number that the next completion has, of all there have ever been */
  constructor(number: number) {
    this.contexts = this.owners.map((owner) => this.scene.host.owners.allocate(owner));
    const { cursor } = this.evd['record'].store;
    cursor.next = cursor.scanned = number;
    cursor.rebase();
  }

  complete(view: number, of: number): void {
    const { ring } = this.scene.host.cq;
    if (ring.length >= this.qlen) return;
    const cookie = this.made++ * VIEWS.length + view;
    this.scene.host.cq.add({ context: this.contexts[of]!, cookie });
    this.unseen.push({ label: cookie, of, isHidden: false });
  }

  scan(): void {
    const found = this.look();
    assert.equal(this.evd.feed.scan(), found);
  }

  post(): void {
    this.look();
    const label = this.made++ * VIEWS.length;
    if (this.list.filter(({ of }) => of === undefined).length === this.qlen) return;
    this.evd.postSe(label);
    this.list.push({ label, of: undefined, isHidden: false });
  }

  dequeue(): void {
    assert.equal(label(this.evd.dequeue()), this.next());
  }

  dequeueInto(max: number): void {
    const expected: number[] = [];
    while (expected.length < max) {
      const next = this.next();
      if (next === undefined) break;
      expected.push(next);
    }
    const count = this.evd.dequeueInto(this.batch, max);
    assert.deepEqual(
      this.batch.events.slice(0, count).map((event) => label(event)),
      expected,
    );
  }

  purge(of: number): void {
    this.look();
    for (const entry of this.list) {
      if (entry.of !== of || entry.isHidden) continue;
      entry.isHidden = true;
      this.dropped++;
    }
    this.evd.feed.purge(this.contexts[of]!);
  }

  end(of: number): void {
    this.ended.add(of);
    this.scene.host.owners.free(this.contexts[of]!);
  }

  resize(qlen: number): void {
    this.look();
    const held = Math.max(this.list.length, this.held());
    this.qlen = Math.max(1, held, qlen);
    this.evd.resize(this.qlen);
  }

  check(): void {
    const { evd, contexts, list } = this;
    assert.equal(this.scene.host.cq.ring.length, this.held(), 'entries of the ring in use');
    contexts.forEach((context, of) => {
      const left = list.filter((entry) => entry.of === of && !entry.isHidden).length;
      assert.equal(evd.feed.left(context), left);
    });
    this.look();
    const { pending, dropped } = evd.query();
    assert.equal(pending, list.filter(({ isHidden }) => !isHidden).length, 'pending');
    assert.equal(dropped, this.dropped, 'dropped');
    assert.equal(this.scene.host.cq.ring.length, this.held(), 'entries of the ring in use');
  }

  /** Entries of the ring that completions may hold. */
  private held(): number {
    const completions = this.list.filter(({ of }) => of !== undefined);
    const first = completions.findIndex(({ isHidden }) => !isHidden);
    return this.unseen.length + (first < 0 ? 0 : completions.length - first);
  }

  /** Returns how many the consumer may see. */
  private look(): number {
    let found = 0;
    for (const entry of this.unseen.splice(0)) {
      const isEnded = entry.of !== undefined && this.ended.has(entry.of);
      const view = isEnded ? false : VIEWS[entry.label % VIEWS.length];
      if (isEnded) this.dropped++;
      if (view === 'absent') continue;
      entry.isHidden = view === false;
      if (!entry.isHidden) found++;
      this.list.push(entry);
    }
    return found;
  }

  private next(): number | undefined {
    for (;;) {
      if (!this.list.some(({ isHidden }) => !isHidden)) this.look();
      const entry = this.list.shift();
      if (entry === undefined) return undefined;
      if (entry.isHidden) continue;
      if (entry.of === undefined || !this.ended.has(entry.of)) return entry.label;
      this.dropped++;
    }
  }
}

type Step = (pair: Pair) => void;

const endpoint = fc.integer({ min: 0, max: ENDPOINTS - 1 });
const complete = fc
  .tuple(fc.integer({ min: 0, max: VIEWS.length - 1 }), endpoint)
  .map(([view, of]): [string, Step] => [`complete ${of} as ${view}`, (p) => p.complete(view, of)]);
const sizes = fc.integer({ min: 1, max: 2 * QLEN });
const few = fc.integer({ min: 0, max: 5 });
const step = fc.oneof(
  { weight: 6, arbitrary: complete },
  { weight: 2, arbitrary: fc.constant<[string, Step]>(['post', (pair) => pair.post()]) },
  { weight: 1, arbitrary: fc.constant<[string, Step]>(['scan', (pair) => pair.scan()]) },
  { weight: 3, arbitrary: fc.constant<[string, Step]>(['dequeue', (pair) => pair.dequeue()]) },
  {
    weight: 2,
    arbitrary: few.map((n): [string, Step] => [`dequeueInto ${n}`, (pair) => pair.dequeueInto(n)]),
  },
  {
    weight: 1,
    arbitrary: endpoint.map((of): [string, Step] => [`purge ${of}`, (p) => p.purge(of)]),
  },
  { weight: 1, arbitrary: sizes.map((n): [string, Step] => [`resize ${n}`, (p) => p.resize(n)]) },
);
const endOf = fc.constant<[string, Step]>(['end 0', (pair) => pair.end(0)]);

describe('evd: the queue against a list', () => {
  for (const first of [0, 2 ** 32 - 6]) {
    it(`keeps order, counts and entries, from completion ${first} on`, () => {
      const steps = fc.array(
        fc.oneof({ weight: 40, arbitrary: step }, { weight: 1, arbitrary: endOf }),
        {
          minLength: 1,
          maxLength: 60,
        },
      );
      const property = fc.property(steps, fc.boolean(), (list, checksEach) => {
        const pair = new Pair(first);
        for (const [, run] of list) {
          run(pair);
          if (checksEach) pair.check();
        }
        pair.check();
        for (let i = 0; i < 8 * QLEN; i++) pair.dequeue();
        pair.check();
      });
      fc.assert(property, { numRuns: 300, seed: 5 });
    });
  }
});
