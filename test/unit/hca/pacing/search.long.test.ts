// All interleavings of a device, its event loop, its consumer and its peer, to a fixpoint: nothing
// starves, no wake-up is lost, every request and every ACK leaves before the device sleeps, and an
// idle device sleeps. Rows of the tables that are changed are found out. The small worlds take
// minutes: those with a peer of ours have their turn one day, those with a foreign one the next;
// `PACING_SEARCH=whole` searches all.

import assert from 'node:assert/strict';
import { BEGIN, ROUND } from '../../../../providers/hca/pacing/pumping.js';
import { BURST, DOORBELL, ORDER } from '../../../../providers/hca/pacing/sending.js';
import { compile, type Decisions, type Row } from '../../../../providers/hca/pacing/table.js';
import { CONVERSATION, REQUEST, REST } from '../../../../providers/hca/pacing/turning.js';
import { search } from '../../../support/interleaving-search.js';
import { partOfToday } from '../../../support/part-of-today.js';
import { PacedWorld } from './paced-world.js';
import type { Scenario } from './pace-rules.js';

const BASE = { messages: 2, burst: 1, volley: 0, lag: 1, own: 1, posts: 1, deferred: 0 } as const;
const whole = process.env['PACING_SEARCH'] === 'whole';
const isForeignDay = partOfToday(2) === 1;
const QUIET = { ...BASE, messages: 1, own: 0 } as const;

/** Small worlds in which anything may happen at any time. */
const WORLDS: readonly Scenario[] = [
  ...(['handler', 'awaits'] as const).flatMap((consumer) =>
    (['event', 'adaptive'] as const).map((polling) => ({ ...BASE, consumer, polling })),
  ),
  // What one that polls may do at any time makes a world larger.
  ...(['event', 'spin'] as const).map((polling) => {
    return { ...BASE, own: 0, consumer: 'polls' as const, polling };
  }),
].flatMap((world) =>
  [false, true].map((foreign): Scenario => {
    const peer = foreign ? 'a foreign peer' : 'a peer of ours';
    return {
      ...world,
      foreign,
      name: `a consumer that ${world.consumer}, ${world.polling}, ${peer}`,
    };
  }),
);

/** Worlds of one great thing. */
const CROWDS: readonly Scenario[] = (
  [
    { name: 'tasks without end', deferred: 400 },
    { name: 'requests of one task', messages: 0, own: 1, posts: 40 },
    { name: 'a burst', messages: 20, burst: 20 },
    { name: 'a burst of a foreign peer', messages: 3, burst: 3, foreign: true },
    { name: 'answers one by one', messages: 4, burst: 4, consumer: 'awaits' },
    { name: 'bursts for one that polls', messages: 4, burst: 2, consumer: 'polls' },
    { name: 'a volley', volley: 60, foreign: true },
    { name: 'a volley of microtasks', volley: 120, polling: 'adaptive', consumer: 'awaits' },
    { name: 'a conversation', volley: 60, lag: 3, polling: 'adaptive' },
    { name: 'awaited', volley: 60, lag: 3, polling: 'adaptive', consumer: 'awaits' },
  ] as const
).map((crowd) => ({ ...QUIET, consumer: 'handler', polling: 'event', foreign: false, ...crowd }));

const SCENARIOS = [...CROWDS, ...WORLDS];
const SEARCHED = [...CROWDS, ...WORLDS.filter(({ foreign }) => whole || foreign === isForeignDay)];

/** Its interleavings take minutes, and with fewer messages its rule says nothing. */
const LEFT_TO_ITSELF = 'awaited';

interface Planted {
  readonly decisions: Decisions<string, string>;
  readonly row: string;
  readonly change: Partial<Row<string, string>>;
  readonly found: RegExp;
}

/** @param then what the row lets happen instead, or whatever else of it is wrong */
function planted<Fact extends string, Action extends string>(
  decisions: Decisions<Fact, Action>,
  row: string,
  change: Partial<Row<NoInfer<Fact>, NoInfer<Action>>>,
  found: RegExp,
): Planted {
  return { decisions: decisions, row, change, found };
}

const PLANTED: readonly Planted[] = [
  // the event loop
  planted(ROUND, 'bounded turns', { then: 'ROUND' }, /event loop starves: looks/),
  planted(REQUEST, 'bounded pumps of a turn', { then: 'MICROTASK' }, /event loop starves/),
  planted(CONVERSATION, 'bounded slices', { then: 'LOOK' }, /event loop starves/),
  // the consumer
  planted(BEGIN, 'consumers who poll get their turn', { then: 'ROUND' }, /consumer starves/),
  planted(ROUND, 'data waits for consumers who poll', { then: 'ROUND' }, /consumer starves/),
  // the sender
  planted(
    BURST,
    'a long burst is answered at once',
    { then: 'WAIT' },
    /sender starves: its window/,
  ),
  planted(BURST, 'foreign peers do not wait for a second answer', { then: 'WAIT' }, /its window/),
  planted(
    ORDER,
    'ACK before reply toward foreign peers',
    { then: 'REQUESTS' },
    /overtakes the ACK/,
  ),
  // the receiver
  planted(
    DOORBELL,
    'the answer to a lone message leaves at its doorbell',
    { then: 'LEAVE' },
    /answer waits/,
  ),
  planted(DOORBELL, 'requests that leave eagerly', { then: 'LEAVE' }, /end of the task/),
  planted(REQUEST, 'one burst for what a task posts', { then: 'TURN' }, /waits for a turn/),
  planted(REQUEST, 'one burst for the answers to a burst', { then: 'MICROTASK' }, /one by one/),
  // wake-ups
  planted(
    ROUND,
    'rounds go on while something moves',
    { then: 'SLEEP' },
    /starves: a request|of \d/,
  ),
  planted(REST, 'more to do at once', { then: 'SLEEP' }, /it sleeps|of \d/),
  // what is idle, and what each mode promises
  planted(ROUND, 'nothing moves any more', { then: 'TURN' }, /spins while idle/),
  planted(REST, 'sleep until the deadline', { then: 'TURN' }, /spins while idle/),
  planted(REST, 'the port is polled', { then: 'SLEEP' }, /sleeps while it is to poll/),
  planted(CONVERSATION, 'a handler has answered', { then: 'END' }, /turns for \d+ messages/),
  planted(CONVERSATION, 'a microtask has answered', { then: 'END' }, /turns for \d+ messages/),
];

/** Lets a table be compiled from other rows, and puts things right again. */
async function withBug(
  { decisions, row, change }: Planted,
  run: () => Promise<void>,
): Promise<void> {
  const { table, actions, byFacts } = decisions;
  const rows = table.rows.map((each) => (each.name === row ? { ...each, ...change } : each));
  assert.notDeepEqual(rows, table.rows);
  const bad = compile({ ...table, rows }, Object.keys(actions));
  const before = byFacts.slice();
  byFacts.set(bad.byFacts);
  try {
    await run();
  } finally {
    byFacts.set(before);
  }
}

describe('pacing: all interleavings', () => {
  for (const scenario of SEARCHED) {
    it(scenario.name, async () => {
      if (scenario.name === LEFT_TO_ITSELF) return new PacedWorld(scenario).finish();
      const { states } = await search(() => new PacedWorld(scenario));
      assert.ok(states > 4, `${states} states`);
    });
  }

  for (const bug of PLANTED) {
    it(`finds a bug in '${bug.row}': ${JSON.stringify(bug.change)}`, async () => {
      await withBug(bug, async () => {
        const breach = await firstBreach();
        assert.match(breach, bug.found);
      });
    });
  }
});

/** Of the worlds that are left to themselves: a bug that is planted need not be searched for. */
async function firstBreach(): Promise<string> {
  for (const scenario of SCENARIOS) {
    try {
      await new PacedWorld(scenario).finish();
    } catch (error) {
      return String(error);
    }
  }
  return 'not found';
}
