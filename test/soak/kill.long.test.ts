import assert from 'node:assert/strict';
import { killCases, KillSoak } from './kill-soak.js';
import { networkOf } from '../support/loopback.js';

const COUNT = 20;

describe('processes that are killed, or stopped', () => {
  it(`leave their peers in order: ${COUNT} of them, both roles, every phase`, async function () {
    // Ten seconds on a machine that has nothing else to do.
    this.timeout(240_000);
    const cases = killCases(7, COUNT);
    const kinds = new Set(cases.map(({ strike }) => strike));
    assert.deepEqual([...kinds].sort(), ['kill', 'pause', 'stop']);
    const { failures, ends, tooSlow } = await new KillSoak(cases, networkOf(46)).run(4);
    assert.deepEqual(failures, []);
    assert.ok((ends['BROKEN'] ?? 0) > 0, JSON.stringify(ends));
    assert.ok(tooSlow < COUNT / 2, `${tooSlow} pauses too long to say anything`);
  });
});
