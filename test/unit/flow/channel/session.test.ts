// Every interleaving of two sessions, to a fixpoint: no frame without a receive, no deadlock, each
// message once and in order or given up whole; and planted bugs that the search finds.
import assert from 'node:assert/strict';
import { Credits } from '../../../../core/flow/channel/credits.js';
import { search } from '../../../support/interleaving-search.js';
import { type PairScenario, SessionPair } from './session-pair.js';

const explore = (scenario: PairScenario): ReturnType<typeof search> =>
  search(() => new SessionPair(scenario));

const FULL: PairScenario = { buffers: [2, 2], lengths: [[1, 2], [3]] };
const SCENARIOS: Readonly<Record<string, PairScenario>> = {
  'the fewest buffers, both full': FULL,
  'a consumer that never takes does not hold up the other way': { ...FULL, takes: 0 },
  'the same of the other side': { ...FULL, takes: 1 },
  'messages longer than all buffers': { buffers: [2, 3], lengths: [[20], [9]] },
  'more buffers than one side needs': { buffers: [4, 2], lengths: [[1], [2, 3]] },
  'messages that are given up': { buffers: [2, 2], lengths: [[17, 1], []], givesUp: true },
};

function planted<T extends object, K extends keyof T>(owner: T, name: K, value: T[K]): () => void {
  const whole = Object.getOwnPropertyDescriptor(owner, name)!;
  Object.defineProperty(owner, name, { configurable: true, writable: true, value });
  return () => Object.defineProperty(owner, name, whole);
}

/** A method as it was, to be called on what a planted one is called on. */
const original = <K extends 'posted' | 'maySend'>(name: K): Credits[K] =>
  Object.getOwnPropertyDescriptor(Credits.prototype, name)!.value as Credits[K];
const [posted, maySend] = [original('posted'), original('maySend')];

const PLANTS: Readonly<Record<string, readonly [plant: () => () => void, finds: RegExp]>> = {
  'messages use the reserved credit': [
    () =>
      planted(Credits.prototype, 'maySend', function (this: Credits, kind) {
        return kind === 'CREDIT' ? maySend.call(this, kind) : this.available > -1;
      }),
    /a frame is sent with a credit|the credit of the peer|RNR|negative|stuck/,
  ],
  'CREDIT frames are never sent': [
    () =>
      planted(Credits.prototype, 'maySend', function (this: Credits, kind) {
        return kind !== 'CREDIT' && maySend.call(this, kind);
      }),
    /stuck|does not hear of the end/,
  ],
  'a CREDIT frame is not told of': [
    () =>
      planted(Credits.prototype, 'posted', function (this: Credits, kind) {
        if (kind !== 'CREDIT') posted.call(this, kind);
      }),
    /stuck|does not hear of the end/,
  ],
  'a receive is told of twice': [
    () =>
      planted(Credits.prototype, 'posted', function (this: Credits, kind) {
        posted.call(this, kind);
        if (kind !== 'CREDIT') this.owed++;
      }),
    /frame.credits|the credit of the peer|RNR/,
  ],
  'a CREDIT frame is answered by one': [
    () =>
      planted(Credits.prototype, 'posted', function (this: Credits, kind) {
        posted.call(this, kind);
        if (kind === 'CREDIT') this.owed++;
      }),
    /frame.credits|rest|RNR|the credit of the peer/,
  ],
};

describe('channel session', function () {
  this.timeout(60_000);

  for (const [name, scenario] of Object.entries(SCENARIOS)) {
    it(`all interleavings: ${name}`, async function () {
      const { states, transitions, ends } = await explore(scenario);
      assert.ok(ends > 0);
      if (this.test) this.test.title += ` (${states} states, ${transitions} transitions)`;
    });
  }

  for (const [name, [plant, finds]] of Object.entries(PLANTS)) {
    it(`finds a planted bug: ${name}`, async () => {
      const takeOut = plant();
      try {
        await assert.rejects(explore({ ...FULL, takes: 0 }), finds);
      } finally {
        takeOut();
      }
    });
  }
});
