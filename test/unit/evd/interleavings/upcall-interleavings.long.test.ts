/**
 * Every interleaving of what can happen to an EVD, to a fixpoint (design, upcall policies 1 to 8).
 * `UPCALL_SEARCH=whole` searches larger spaces: minutes instead of seconds.
 */
import assert from 'node:assert/strict';
import { EvdWorld } from './evd-world.js';
import { type PlantedBug, plant, real } from './planted.js';
import { Violation } from './rules.js';
import { search, type SearchResult } from './search.js';
import type { Core, Space } from './space.js';

const whole = process.env['UPCALL_SEARCH'] === 'whole';

const one: Space = {
  hardware: false,
  events: whole ? 2 : 1,
  arrivals: 1,
  software: false,
  armFailures: false,
  asyncUpcalls: 1,
  policies: ['ONE'],
  pending: ['deliver'],
  takers: [],
  cno: false,
  close: false,
};
const policies: Space = {
  ...one,
  policies: ['ONE', 'NOTIFY', 'MANY'],
  pending: ['deliver', 'keep', 'refuse'],
  close: whole,
};
const native: Space = { ...policies, hardware: true };
const overlapping: Space = { ...one, asyncUpcalls: 2, policies: ['MANY'], close: true };
const overlappingAll: Space = { ...policies, asyncUpcalls: 2, events: 1 };
const asyncUpcalls: Space = { ...overlapping, isAsync: true, close: false };
const hardware: Space = { ...one, hardware: true, pending: ['deliver', 'keep', 'refuse'] };
const notified: Space = { ...one, cno: true, policies: whole ? ['ONE'] : [], takers: ['waiter'] };

const SPACES: Readonly<Record<string, Space>> = {
  'every policy, every pending choice': policies,
  'every policy, every pending choice, a native thread': native,
  'every policy, every pending choice, two upcalls at a time': overlappingAll,
  'two upcalls at a time, closing': { ...overlapping, hardware: whole },
  'two upcalls that may await their own end': asyncUpcalls,
  'an upcall, closing, a native thread': { ...hardware, close: true },
  'failing arms, a native thread': {
    ...hardware,
    pending: ['deliver', 'refuse'],
    armFailures: true,
  },
  'merged with software events': {
    ...one,
    software: true,
    events: 2,
    pending: ['deliver', 'keep'],
  },
  'a waiter, an iteration, a subscriber': {
    ...one,
    events: 2,
    policies: whole ? ['ONE'] : [],
    takers: ['waiter', 'iterator', 'subscription'],
    close: true,
  },
  'a waiter, an iteration, a subscriber, a native thread': {
    ...one,
    hardware: true,
    takers: ['waiter', 'iterator', 'subscription'],
  },
  'a CNO': notified,
  'a CNO, a native thread': { ...notified, hardware: true, takers: [] },
  'a CNO beside upcalls': { ...one, cno: true, events: 1, asyncUpcalls: whole ? 1 : 0 },
};

interface Bug extends PlantedBug {
  readonly space: Space;
  readonly found: RegExp;
}

const BUGS: readonly Bug[] = [
  {
    name: 'arm after drain without a second look',
    file: 'evd/dispatcher',
    edits: [
      ['if (this.arm?.request(this.want) === true)', 'if (this.arm?.request(this.want) === 1)'],
    ],
    space: hardware,
    found: /stranded/,
  },
  {
    name: 'upcall before re-arm without re-check',
    file: 'evd/dispatcher',
    edits: [
      ['if (budget > 0)\n                    this.armAndLook();', 'this.arm?.request(this.want);'],
    ],
    space: hardware,
    found: /stranded/,
  },
  {
    name: 'count pending, then arm',
    file: 'evd/evd-record',
    edits: [
      ['this.dispatcher.armAhead();\n        this.store.scan();', 'this.store.scan();'],
      [
        'if (pending === 0)\n            return;',
        'if (pending === 0) { this.dispatcher.armAhead(); return; }',
      ],
    ],
    space: hardware,
    found: /enabled although events wait|stranded/,
  },
  {
    name: 'ignoring the CQ in the pending check',
    file: 'evd/evd-record',
    edits: [
      [
        'this.store.scan();\n        const { pending } = this.store;',
        'const pending = this.store.queue.length;',
      ],
    ],
    space: hardware,
    found: /enabled although events wait/,
  },
  {
    name: 'recursion from an error completion',
    file: 'evd/dispatcher',
    edits: [['this.again = true;', 'this.pump();']],
    space: overlapping,
    found: /recurses/,
  },
  {
    name: 'TEARDOWN that waits for its own caller',
    file: 'evd/upcall/gate',
    edits: [['remaining.delete(own);', '']],
    space: one,
    found: /teardown does not resolve/,
  },
  {
    name: 'TEARDOWN that waits for others that wait',
    file: 'evd/upcall/gate',
    edits: [['if (token.waits > 0)', 'if (token.waits > 9)']],
    space: overlapping,
    found: /teardown does not resolve/,
  },
  {
    name: 'TEARDOWN that does not wait',
    file: 'evd/upcall/gate',
    edits: [['new Set(this.running);\n        if', 'new Set();\n        if']],
    space: one,
    found: /teardown resolved while/,
  },
  {
    name: 'an upcall too deep in calls to be known as the one that awaits its TEARDOWN',
    file: 'evd/upcall/runner',
    edits: [['v8.stackTraceLimit = Infinity;', '']],
    space: { ...asyncUpcalls, asyncUpcalls: 1 },
    found: /teardown does not resolve/,
  },
  {
    name: 'an upcall that is not known any more when another one has ended',
    file: 'evd/upcall/runner',
    edits: [['outlived.delete(frame.name);', 'outlived.clear();']],
    space: asyncUpcalls,
    found: /teardown does not resolve/,
  },
  {
    name: 'a close that waits for a second upcall that closes',
    file: 'evd/upcall/gate',
    edits: [['this.leave(drain.remaining, token);', '']],
    space: overlapping,
    found: /teardown does not resolve/,
  },
  {
    name: 'a close that excuses its callers from what others wait for',
    file: 'evd/upcall/gate',
    edits: [['if (!drain.joint)\n                continue;', '']],
    space: overlapping,
    found: /teardown resolved while/,
  },
  {
    name: 'a trigger that runs at once',
    file: 'evd/dispatcher',
    edits: [['this.scheduler.defer(this.runScheduled)', 'this.runScheduled()']],
    space: one,
    found: /inside a consumer's call/,
  },
  {
    name: 'the end of an upcall without a look at the queue',
    file: 'evd/evd-record',
    edits: [['upcallEnded() {\n        this.dispatcher.kick();', 'upcallEnded() {']],
    space: one,
    found: /stranded|nobody will tell/,
  },
  {
    name: 'ONE that overlaps',
    file: 'evd/upcall/policy',
    edits: [
      [
        'ONE: { enabled: true, carriesEvent: true, limit: 1 }',
        'ONE: { enabled: true, carriesEvent: true, limit: 2 }',
      ],
    ],
    space: { ...overlapping, policies: ['ONE'] },
    found: /overlap|armed although/,
  },
  {
    name: 'arming whether or not anything wants the next event',
    file: 'evd/dispatcher',
    edits: [['return this.upcalls.gate.wantsNext || this.cnoWants;', 'return true;']],
    space: one,
    found: /armed although/,
  },
  {
    name: 'an upcall that is due although the queue has run empty and was kept',
    file: 'evd/upcall/gate',
    edits: [['this.due = deliverPending;', 'this.due = true;']],
    space: { ...one, pending: ['keep'] },
    found: /kept events fired/,
  },
  {
    name: 'a waiter that is forgotten when its time is up in the middle of events',
    file: 'evd/dispatcher',
    edits: [['this.noticed = true;', 'this.noticed = this.waiter === undefined;']],
    space: { ...one, takers: ['waiter'] },
    found: /a waiter waits although/,
  },
  {
    name: 'a subscriber that gets events after it has left',
    file: 'evd/evd',
    edits: [['dispatcher.sink = undefined;\n            record.engage();', 'record.engage();']],
    space: { ...one, takers: ['subscription'] },
    found: /after unsubscribing|stranded/,
  },
  {
    name: 'a CNO that is not told of what came while the EVD was disabled',
    file: 'evd/evd',
    edits: [
      [
        "this.setTriggering('enable');\n        this.record.lookAndKick();",
        "this.setTriggering('enable'); return;",
      ],
    ],
    space: notified,
    found: /stranded|nobody will tell/,
  },
  {
    name: 'a CNO told before the queue is armed again, and no second look',
    file: 'evd/dispatcher',
    edits: [
      ['if (this.arm?.request(this.want) === true)', 'if (this.arm?.request(this.want) === 1)'],
    ],
    space: { ...notified, hardware: true, takers: [] },
    found: /stranded/,
  },
  {
    name: 'a trigger of the CNO that no waiter takes',
    file: 'evd/cno/cno',
    edits: [['const waiter = this.waiters.shift();', 'const waiter = undefined;']],
    space: notified,
    found: /although the CNO is triggered/,
  },
];

async function run(name: string, core: Core, space: Space): Promise<SearchResult> {
  const result = await search((choose) => new EvdWorld(core, space, choose));
  console.log(`      ${name}: ${result.states} states, ${result.transitions} transitions`);
  return result;
}

describe('upcall interleavings, to a fixpoint', function () {
  this.timeout(whole ? 3_600_000 : 180_000);

  for (const [name, space] of Object.entries(SPACES)) {
    it(`hold every rule: ${name}`, async () => {
      const { violation } = await run(name, real, space);
      assert.equal(violation, undefined);
    });
  }

  it('find a level-triggered arm', async () => {
    const result = await run('level-triggered', real, { ...hardware, levelTriggered: true });
    assert.match(result.violation ?? 'nothing found', /notified of nothing new/);
  });

  for (const bug of BUGS) {
    it(`find ${bug.name}`, async () => {
      // Frames are shared by all worlds of a copy, so a bug in them may show as a path is retaken.
      const { violation } = await run(bug.name, await plant(bug), bug.space).catch(
        (error: unknown) => {
          if (error instanceof Violation) return { violation: error.message };
          throw error;
        },
      );
      assert.match(violation ?? 'nothing found', bug.found);
    });
  }
});
