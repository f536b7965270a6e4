// The page of results, as runs of either size write it one after the other.
import assert from 'node:assert/strict';

import { interopPage, recordPieces } from './interop-table.js';
import type { RunIdentity } from './interop-table.js';
import type { InteropRow, Outcome } from './suite.js';

function row(counterpart: string, version = '1'): InteropRow {
  return { counterpart, version, role: 'client', transport: 'RC, IPv4', mtuBytes: 1024 };
}

function outcome(counterpart: string, full: boolean, passed = true, version = '1'): Outcome {
  return { name: counterpart, row: row(counterpart, version), full, passed, seconds: 1 };
}

const FULL_RUN: RunIdentity = { command: 'run full', date: '2026-01-01', revision: 'aaaa' };
const SMALL_RUN: RunIdentity = { command: 'run', date: '2026-02-02', revision: 'bbbb' };
const FULL_ROWS = [row('storm'), row('gale')];

/** Lines of the table and of the runs, without padding. */
function linesOf(page: string): string[] {
  const lines = page.split('\n').filter((line) => /^(Run|\| [a-z])/.test(line));
  return lines.map((line) => line.replaceAll(/ +/g, ' '));
}

describe('guest: docs/interop.md', () => {
  const afterFull = interopPage(
    [outcome('ping', false), outcome('storm', true, false), outcome('gale', true)],
    FULL_RUN,
    FULL_ROWS,
    '',
  );

  it('a full run writes both sections, failures among them', () => {
    assert.deepEqual(linesOf(afterFull), [
      'Run of `run full`, 2026-01-01, revision aaaa.',
      '| ping | 1 | client | RC, IPv4 | 1024 | pass |',
      '| storm | 1 | client | RC, IPv4 | 1024 | FAIL | 2026-01-01, aaaa |',
      '| gale | 1 | client | RC, IPv4 | 1024 | pass | 2026-01-01, aaaa |',
    ]);
  });

  it('a small run leaves what the full run said, and says whose it is', () => {
    const page = interopPage([outcome('ping', false, true, '2')], SMALL_RUN, FULL_ROWS, afterFull);
    assert.deepEqual(linesOf(page), [
      'Run of `run`, 2026-02-02, revision bbbb.',
      '| ping | 2 | client | RC, IPv4 | 1024 | pass |',
      '| storm | 1 | client | RC, IPv4 | 1024 | FAIL | 2026-01-01, aaaa |',
      '| gale | 1 | client | RC, IPv4 | 1024 | pass | 2026-01-01, aaaa |',
    ]);
    const again = interopPage([outcome('ping', false)], SMALL_RUN, FULL_ROWS, page);
    assert.equal(linesOf(again).length, 4);
  });

  it('a piece of the full run changes its own lines, and nothing of the small run', () => {
    const piece = [outcome('ping', false, false), outcome('storm', true, true, '3')];
    const page = recordPieces(piece, SMALL_RUN, FULL_ROWS, afterFull);
    assert.deepEqual(linesOf(page), [
      'Run of `run full`, 2026-01-01, revision aaaa.',
      '| ping | 1 | client | RC, IPv4 | 1024 | pass |',
      '| storm | 3 | client | RC, IPv4 | 1024 | pass | 2026-02-02, bbbb |',
      '| gale | 1 | client | RC, IPv4 | 1024 | pass | 2026-01-01, aaaa |',
    ]);
    assert.equal(recordPieces([], SMALL_RUN, FULL_ROWS, page), page);
  });

  it('a line whose case is gone goes with the next run of any size', () => {
    const page = interopPage([outcome('ping', false)], SMALL_RUN, [row('gale', '3')], afterFull);
    assert.deepEqual(linesOf(page).slice(2), [
      '| gale | 1 | client | RC, IPv4 | 1024 | pass | 2026-01-01, aaaa |',
    ]);
  });

  it('a case that has not run so far is said to be so', () => {
    const page = interopPage([outcome('ping', false)], SMALL_RUN, FULL_ROWS, 'whatever');
    assert.deepEqual(linesOf(page).slice(2), [
      '| storm | 1 | client | RC, IPv4 | 1024 | not run | |',
      '| gale | 1 | client | RC, IPv4 | 1024 | not run | |',
    ]);
  });
});
