import assert from 'node:assert/strict';
import { cpuSeconds, cpuSecondsIn } from './cpu-time.js';

describe('guest: time of the processor', () => {
  it('is of the process and of its children that have ended', () => {
    const stat = '7 (a) b) S 1 7 7 0 -1 4194304 10 20 30 40 150 50 300 100 20 0 1 0 99 1 2\n';
    assert.equal(cpuSecondsIn(stat), 6);
  });

  it('is read of a process that runs, and 0 of one that does not', () => {
    assert.ok(cpuSeconds('self') > 0);
    assert.equal(cpuSeconds(undefined), 0);
    assert.equal(cpuSeconds(2 ** 30), 0);
  });
});
