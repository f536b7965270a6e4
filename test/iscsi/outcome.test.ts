// What iscsi-test-cu prints, and what is made of it; and the tables of tests that are not passed.

import assert from 'node:assert/strict';
import { FAILURES_OVER_ISER, SKIPS } from './explained.js';
import { outcomeOf, testNames } from './outcome.js';

const summary = (failed: number, ran = 1): string => `
Suite: Read10
  Test: Simple ...${failed > 0 ? 'FAILED' : 'passed'}

Run Summary:    Type  Total    Ran Passed Failed Inactive
              suites      1      1    n/a      0        0
               tests      1      ${ran}      ${ran - failed}      ${failed}        0
             asserts    512    512    512      0      n/a
`;
const ended = { exitCode: 0, signal: undefined };

describe('outcome of a test of iscsi-test-cu', () => {
  it('is passed when it ran and nothing failed', () => {
    assert.deepEqual(outcomeOf({ ...ended, output: summary(0) }), {
      verdict: 'passed',
      reasons: [],
    });
  });

  it('is skipped when the program passes what the target lacks', () => {
    const lines = [
      '    [SKIPPED] WRITEATOMIC16 is not implemented.',
      '    [SKIPPING] Test UNMAP of 0 blocks with multiple descriptors not supported',
      '    Media is not removable. Skipping test.',
    ];
    for (const line of lines) {
      const { verdict, reasons } = outcomeOf({ ...ended, output: line + summary(0) });
      assert.equal(verdict, 'skipped', line);
      assert.deepEqual(reasons, [line.trim()]);
    }
    const output = `    skipping non-LU designator: 2\n${summary(0)}`;
    assert.equal(outcomeOf({ ...ended, output }).verdict, 'passed');
  });

  it('is failed for an assertion, an exit code, a signal, and a test that did not run', () => {
    const failed = outcomeOf({ ...ended, output: `    [FAILED] READ10 is bad\n${summary(1)}` });
    assert.equal(failed.verdict, 'failed');
    assert.ok(failed.reasons.includes('[FAILED] READ10 is bad'));
    const verdictOf = (run: Parameters<typeof outcomeOf>[0]): string => outcomeOf(run).verdict;
    assert.equal(verdictOf({ output: summary(0), exitCode: 10, signal: undefined }), 'failed');
    assert.equal(verdictOf({ output: '', exitCode: undefined, signal: 'SIGSEGV' }), 'failed');
    assert.equal(verdictOf({ ...ended, output: summary(0, 0) }), 'failed');
    assert.equal(verdictOf({ ...ended, output: 'Failed to log in to target' }), 'failed');
  });

  it('tells where a program was that crashed or was killed', () => {
    const output = '    Write 65536 blocks of 0xFF\n\nKilled\n';
    const { reasons } = outcomeOf({ output, exitCode: 137, signal: undefined });
    const last = 'the last line: Write 65536 blocks of 0xFF';
    assert.deepEqual(reasons, ['exit code 137, 0 tests ran', last]);
  });

  it('is asked for by the names of single tests', () => {
    const listing =
      'ALL\nALL.Read10\nALL.Read10.Simple\nSCSI.Read10.Simple\n ALL.iSCSITMF.Abort \n';
    assert.deepEqual(testNames(listing), ['ALL.Read10.Simple', 'ALL.iSCSITMF.Abort']);
  });

  it('is explained where it is not passed', () => {
    for (const [name, why] of Object.entries({ ...FAILURES_OVER_ISER, ...SKIPS })) {
      assert.ok(why.length > 10, name);
    }
  });
});
