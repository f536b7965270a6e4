// What .ci/run says at its end, of logs as `npm test`, mocha and our own suites write them.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const REPORT = join(import.meta.dirname, '../../.ci/report.sh');

/** The end of `npm test`: three failures and the counts. */
const LANES = `quick: 3 files, 2 processes at a time
[1/3] test/sums.test.ts: 1 passed, 2 FAILED (0.1 s)
[2/3] test/sweep.test.ts: 2 passed (120.0 s)
[3/3] test/products.test.ts: 0 passed, 1 FAILED (0.1 s)

  3 failing

  1) sums
       of two
         are told:

      AssertionError [ERR_ASSERTION]: 1 == 2
      + expected - actual

      -1
      +2

      at Context.<anonymous> (sums.ts:1:80)

  2) sums
       say much:
     Error: first line
FAIL of another program, which it quotes
      at Context.<anonymous> (sums.ts:1:119)

  3) products
       "before all" hook for "are right":
     Error: no factor
      at Context.<anonymous> (products.ts:2:45)


3 passed, 3 failed
`;

const OWN_SUITE = `PASS  a chair stands
FAIL  a table stands
    it has 3 legs
    of 4
PASS  a bench stands
2 passed, 1 failed
`;

describe('the report of .ci/run', () => {
  const directory = mkdtempSync(join(tmpdir(), 'dapl-ci-'));
  after(() => rmSync(directory, { recursive: true }));

  /** What is printed by these lines of bash, which have the functions of .ci/run. */
  function bash(
    lines: string,
    log = '',
  ): { readonly lines: string[]; readonly code: number | null } {
    const file = join(directory, 'log');
    writeFileSync(file, log);
    const script = `set -uo pipefail\nsource ${REPORT}\nLOG=${file}\n${lines}`;
    const { status, stdout, stderr } = spawnSync('bash', ['-c', script], { encoding: 'utf8' });
    assert.equal(stderr, '');
    return { lines: stdout.split('\n').slice(0, -1), code: status };
  }

  it('names each failed test in a line, with the first line of its message', () => {
    assert.deepEqual(bash('names <"$LOG"', LANES).lines, [
      'sums > of two > are told: AssertionError [ERR_ASSERTION]: 1 == 2',
      'sums > say much: Error: first line',
      'products > "before all" hook for "are right": Error: no factor',
    ]);
    assert.deepEqual(bash('names <"$LOG"', OWN_SUITE).lines, [
      'FAIL  a table stands: it has 3 legs',
    ]);
  });

  it('counts what mocha says where a suite has no line of its own', () => {
    const mocha = '  sums\n    ✔ are right\n\n  2 passing (7ms)\n  1 pending\n\n';
    const { lines } = bash('suite cat "$LOG"\necho "$passed $failed"', mocha);
    assert.equal(lines.at(-1), '2 1');
  });

  it('has the reasons without what was printed before and after them', () => {
    const { lines } = bash('reasons <"$LOG"', LANES);
    assert.equal(lines[0], '  3 failing');
    assert.ok(lines.includes('      at Context.<anonymous> (products.ts:2:45)'));
    assert.ok(!lines.some((line) => line.startsWith('[') || line.includes(' passed, ')));
    const own = bash('reasons <"$LOG"', OWN_SUITE).lines;
    assert.deepEqual(own, ['FAIL  a table stands', '    it has 3 legs', '    of 4']);
  });

  it('ends with the time of each part, what failed in a line each, and the sums', () => {
    const own = join(directory, 'own');
    writeFileSync(own, OWN_SUITE);
    const parts = `suite cat "$LOG"\nsuite cat ${own}\none true\none false\nfinish`;
    const { lines, code } = bash(parts, LANES);
    assert.equal(code, 1);
    const end = lines.slice(lines.indexOf('== seconds of each part'));
    assert.match(end[1] ?? '', /^ +\d+ s {2}\S/);
    assert.deepEqual(end.slice(-8), [
      '== what failed',
      'sums > of two > are told: AssertionError [ERR_ASSERTION]: 1 == 2',
      'sums > say much: Error: first line',
      'products > "before all" hook for "are right": Error: no factor',
      'FAIL  a table stands: it has 3 legs',
      'false',
      '',
      '6 passed, 5 failed',
    ]);
  });

  it('adds what ran apart, also when that did not come to its end', () => {
    const parts = `apart suite cat "$LOG"\none true\njoined\napart exit 0\njoined\nfinish`;
    const { lines, code } = bash(parts, LANES);
    assert.equal(code, 1);
    // It is printed by itself, however the two went.
    assert.ok(lines.indexOf('== true') < lines.findIndex((line) => line.startsWith('== cat ')));
    assert.deepEqual(lines.slice(-3), ['FAILED: exit 0, ended', '', '4 passed, 4 failed']);
  });

  it('is the sums alone, and times, when all is well', () => {
    const { lines, code } = bash('one true\nfinish');
    assert.equal(code, 0);
    assert.deepEqual(lines.slice(1, 3), ['== true', '']);
    // A second may have passed on a busy machine.
    const seconds = lines.map((line) => line.replace(/^ +\d+ s/, 'N s'));
    assert.deepEqual(seconds.slice(-4), [
      '== seconds of each part',
      'N s  true',
      '',
      '1 passed, 0 failed',
    ]);
  });
});
