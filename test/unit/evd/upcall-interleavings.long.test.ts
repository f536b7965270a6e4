import assert from 'node:assert/strict';
import { Evd } from '../../../core/evd/index.js';
import { type PlantedBug, plant } from './planted.js';
import { type SearchResult, search } from './upcall-search.js';
import type { Limits } from './upcall-world.js';

const whole = process.env['UPCALL_SEARCH'] === 'whole';
const software: Limits = {
  hardware: false,
  completions: 1,
  softwareEvents: whole ? 1 : 0,
  armFailures: 0,
  asyncUpcalls: 1,
  policies: ['ONE', 'NOTIFY', 'MANY'],
  pending: ['deliver', 'keep', 'refuse'],
};
const merged: Limits = { ...software, softwareEvents: 1, policies: ['ONE'] };
const hardware: Limits = {
  ...software,
  hardware: true,
  completions: 2,
  softwareEvents: 0,
  policies: whole ? software.policies : ['ONE'],
};
const overlapping: Limits = {
  ...hardware,
  hardware: false,
  asyncUpcalls: 2,
  policies: ['MANY'],
  pending: ['deliver'],
};
const failing: Limits = { ...hardware, completions: 1, armFailures: 1 };

const BUGS: readonly (PlantedBug & { readonly limits: Limits; readonly found: RegExp })[] = [
  {
    name: 'arm after drain without a second look',
    file: 'dispatcher',
    edits: [
      ['if (this.arm?.request(this.want) === true)', 'if (this.arm?.request(this.want) === 1)'],
    ],
    limits: hardware,
    found: /stranded/,
  },
  {
    name: 'upcall before re-arm without re-check',
    file: 'dispatcher',
    edits: [
      ['if (budget > 0)\n                    this.armAndLook();', 'this.arm?.request(this.want);'],
    ],
    limits: hardware,
    found: /stranded/,
  },
  {
    name: 'count pending, then arm',
    file: 'evd',
    edits: [
      ['this.dispatcher.armAhead();\n        this.store.scan();', 'this.store.scan();'],
      [
        'if (pending === 0)\n            return;',
        'if (pending === 0) { this.dispatcher.armAhead(); return; }',
      ],
    ],
    limits: hardware,
    found: /enabled although events wait/,
  },
  {
    name: 'ignoring the CQ in the pending check',
    file: 'evd',
    edits: [
      [
        'this.store.scan();\n        const pending = this.store.pending;',
        'const pending = this.store.queue.length;',
      ],
    ],
    limits: hardware,
    found: /enabled although events wait/,
  },
  {
    name: 'recursion from an error completion',
    file: 'dispatcher',
    edits: [['this.again = true;', 'this.pump();']],
    limits: { ...hardware, policies: ['MANY'] },
    found: /recurses/,
  },
  {
    name: 'a trigger that runs at once',
    file: 'dispatcher',
    edits: [['this.scheduler.defer(this.runScheduled)', 'this.runScheduled()']],
    limits: software,
    found: /inside a consumer's call/,
  },
  {
    name: 'TEARDOWN that waits for its own caller',
    file: 'upcall-gate',
    edits: [['remaining.delete(own);', '']],
    limits: software,
    found: /teardown does not resolve/,
  },
  {
    name: 'TEARDOWN that waits for others that wait',
    file: 'upcall-gate',
    edits: [['if (token.waits > 0)', 'if (token.waits > 9)']],
    limits: overlapping,
    found: /teardown does not resolve/,
  },
  {
    name: 'TEARDOWN that does not wait',
    file: 'upcall-gate',
    edits: [['new Set(this.running);\n        if', 'new Set();\n        if']],
    limits: software,
    found: /teardown resolved while/,
  },
  {
    name: 'the end of an upcall without a look at the queue',
    file: 'evd-feed',
    edits: [['() => this.dispatcher.kick());\n', '() => undefined);\n']],
    limits: software,
    found: /stranded|nobody will tell/,
  },
  {
    name: 'ONE that overlaps',
    file: 'upcall-policy',
    edits: [
      [
        'ONE: { value: 1, enabled: true, carriesEvent: true, limit: 1 }',
        'ONE: { value: 1, enabled: true, carriesEvent: true, limit: 2 }',
      ],
    ],
    limits: { ...overlapping, policies: ['ONE'] },
    found: /overlap|armed although/,
  },
  {
    name: 'arming whether or not anything wants the next event',
    file: 'dispatcher',
    edits: [['return this.upcalls.gate.wantsNext || this.cnoWants;', 'return true;']],
    limits: software,
    found: /armed although/,
  },
];

function print(name: string, result: SearchResult): void {
  console.log(`      ${name}: ${result.states} states, ${result.transitions} transitions`);
}

describe('upcall interleavings, to a fixpoint', function () {
  this.timeout(120_000);

  const spaces = { software, merged, hardware, overlapping, failing };
  for (const [name, limits] of Object.entries(spaces)) {
    it(`hold every rule: ${name}`, async () => {
      const result = await search(Evd, limits);
      print(name, result);
      assert.equal(result.violation, undefined);
    });
  }

  it('find a level-triggered arm', async () => {
    const result = await search(Evd, { ...hardware, levelTriggered: true });
    print('level-triggered', result);
    assert.match(result.violation ?? 'nothing found', /notified of nothing new/);
  });

  for (const bug of BUGS) {
    it(`find ${bug.name}`, async () => {
      const result = await search(await plant(bug), bug.limits);
      print(bug.name, result);
      assert.match(result.violation ?? 'nothing found', bug.found);
    });
  }
});
