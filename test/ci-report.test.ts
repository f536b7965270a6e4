// What .ci/run says at its end, of logs as mocha, concurrently and our own suites write them.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const REPORT = join(import.meta.dirname, '../../.ci/report.sh');

/** Of `npm test`: a lane with failures, and the other one, which is printed after it. */
const LANES = `npm run test:short -- started at 2026-01-01 00:00:00.000

> mocha dist/test

  sums
    \u001b[32m  ✔\u001b[0m\u001b[90m are right\u001b[0m
    1) are told

  1 passing (7ms)
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


npm run test:short -- stopped at 2026-01-01 00:01:01.600 after 61,600ms
npm run test:short -- exited with code 3
npm run test:long -- started at 2026-01-01 00:00:00.000

  a sweep that takes long
    ✔ passes

  2 passing (2m)

npm run test:long -- stopped at 2026-01-01 00:02:00.000 after 120,000ms
npm run test:long -- exited with code 0
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

  it('names a lane that has ended otherwise than by a failed test', () => {
    const killed = LANES.replace('exited with code 0', 'exited with code SIGKILL');
    assert.match(bash('names <"$LOG"', killed).lines.at(-1) ?? '', /test:long .* code SIGKILL$/);
  });

  it('has the reasons without what the other lane printed', () => {
    const { lines } = bash('reasons <"$LOG"', LANES);
    assert.equal(lines[0], '  3 failing');
    assert.ok(lines.includes('      at Context.<anonymous> (products.ts:2:45)'));
    assert.ok(!lines.some((line) => line.includes('takes long') || line.startsWith('npm run')));
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
    assert.deepEqual(
      end.slice(1, 3).map((line) => line.trim()),
      ['120 s  npm run test:long, a lane', '62 s  npm run test:short, a lane'],
    );
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

  it('is the sums alone, and times, when all is well', () => {
    const { lines, code } = bash('one true\nfinish');
    assert.equal(code, 0);
    assert.deepEqual(lines.slice(1, 3), ['== true', '']);
    assert.deepEqual(lines.slice(-4), [
      '== seconds of each part',
      '     0 s  true',
      '',
      '1 passed, 0 failed',
    ]);
  });
});
