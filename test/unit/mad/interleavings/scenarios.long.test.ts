/**
 * "ib_mad: Scenarios for returning posted send MADs" (openib-general, 4 October 2004): each of the
 * scenarios over all interleavings of its small steps, to a fixpoint. Whatever happens when: every
 * send is reported once, a response before it; nothing is reported inside a call of the consumer's;
 * unregistering ends, and no handler is called afterwards; nothing is left.
 */
import assert from 'node:assert/strict';
import { search, type SearchReport } from '../../../support/interleaving-search.js';
import { PLANTS } from './plants.js';
import type { Habit, Posted, Scenario } from './scenario.js';
import { MadSubject } from './subject.js';

const post = (name: string, kind: Posted['kind'], agent: Posted['agent'] = 'a'): Posted => ({
  name,
  agent,
  kind,
});

const HABITS: readonly Habit[] = [
  'looks on',
  'unregisters when it receives',
  'unregisters when a send is reported',
  'cancels everything when a send is reported',
  'sends again when a send is reported',
];

const base = { habit: 'looks on', sendDepth: 2, retries: 1, options: [] } as const;

async function explore(scenario: Scenario): Promise<SearchReport> {
  return search(() => new MadSubject(scenario));
}

/** The test's title gets the numbers, so that the report shows how much has been searched. */
function scenarioTest(title: string, scenario: Scenario): void {
  it(title, async function () {
    const { states, transitions, ends, depth } = await explore(scenario);
    const counts = `${states} states, ${transitions} transitions, ${ends} ends`;
    if (this.test) this.test.title += `: ${counts}, ${depth} steps deep`;
  });
}

describe('MAD, all interleavings', function () {
  this.timeout(120_000);

  describe('1. the client unregisters with a send on the wire', () => {
    for (const habit of HABITS) {
      scenarioTest(`its handler ${habit}`, {
        ...base,
        habit,
        posted: [post('first', 'tell'), post('second', 'tell'), post('overflow', 'tell')],
        options: ['unregister a', 'cancel'],
      });
    }
    scenarioTest('while a request comes in', {
      ...base,
      habit: 'unregisters when it receives',
      posted: [post('first', 'tell'), post('second', 'ask')],
      options: ['unregister a', 'request comes in'],
    });
    scenarioTest('a transfer in segments', {
      ...base,
      retries: 0,
      posted: [post('transfer', 'ask in segments')],
      options: ['unregister a', 'cancel', 'peer acknowledges'],
    });
    scenarioTest('a transfer in segments that the peer aborts', {
      ...base,
      retries: 0,
      posted: [post('transfer', 'ask in segments')],
      options: ['unregister a', 'peer acknowledges', 'peer aborts'],
    });
  });

  describe('2. the client unregisters with a response outstanding', () => {
    for (const habit of HABITS) {
      scenarioTest(`its handler ${habit}`, {
        ...base,
        habit,
        posted: [post('question', 'ask'), post('beside', 'tell')],
        options: ['unregister a', 'cancel', 'respond'],
      });
    }
    scenarioTest('a question in segments', {
      ...base,
      retries: 0,
      habit: 'unregisters when it receives',
      posted: [post('question', 'ask in segments')],
      options: ['peer acknowledges', 'respond'],
    });
    scenarioTest('a transfer half received', {
      ...base,
      retries: 0,
      habit: 'unregisters when it receives',
      posted: [post('question', 'ask')],
      options: ['unregister a', 'transfer comes in'],
    });
  });

  describe('3. a work request completes in error', () => {
    scenarioTest('those behind it belong to another agent', {
      ...base,
      retries: 0,
      posted: [post('first', 'tell'), post('second', 'ask', 'b'), post('overflow', 'tell', 'b')],
      options: ['fail', 'unregister a', 'respond'],
    });
    scenarioTest('in a transfer in segments, before a send of another agent', {
      ...base,
      retries: 0,
      sendDepth: 4,
      posted: [post('transfer', 'ask in segments'), post('beside', 'tell', 'b')],
      options: ['fail', 'peer acknowledges'],
    });
  });

  describe('4. the module or the device goes away', () => {
    const posted = [post('question', 'ask'), post('told', 'tell', 'b'), post('overflow', 'tell')];
    scenarioTest('in order: close', {
      ...base,
      retries: 0,
      posted,
      options: ['close', 'respond'],
    });
    scenarioTest('in order: close, with a transfer half received', {
      ...base,
      retries: 0,
      posted: [post('told', 'tell')],
      options: ['close', 'transfer comes in'],
    });
    for (const way of ['removal is told', 'removal flushes', 'removal is silent'] as const) {
      const forced = { ...base, retries: 0 };
      scenarioTest(`by force, the ${way}`, {
        ...forced,
        posted,
        options: [way, 'unregister a'],
      });
      scenarioTest(`by force, the ${way}, with a response on its way`, {
        ...forced,
        habit: 'sends again when a send is reported',
        posted: [post('question', 'ask')],
        options: [way, 'unregister a', 'respond'],
      });
      scenarioTest(`by force, the ${way}, with a transfer on its way out`, {
        ...forced,
        posted: [post('transfer', 'ask in segments')],
        options: [way, 'peer acknowledges'],
      });
      scenarioTest(`by force, the ${way}, with a transfer half received`, {
        ...forced,
        posted: [post('told', 'tell')],
        options: [way, 'transfer comes in'],
      });
    }
  });
});

describe('MAD, all interleavings: planted bugs', () => {
  for (const { name, scenario, plant, finds } of PLANTS) {
    it(`finds that ${name}`, async () => {
      const restore = plant();
      try {
        await assert.rejects(explore({ ...base, ...scenario }), finds);
      } finally {
        restore();
      }
    });
  }
});
