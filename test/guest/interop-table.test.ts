// The page of results, as runs of either size write it one after the other.
import assert from 'node:assert/strict';

import { interopPage, recordPieces, remadeInteropPage, type RunIdentity } from './interop-table.js';
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

/** Lines of tables and of runs, without padding. */
function linesIn(text: string): string[] {
  const lines = text.split('\n').filter((line) => /^(Run|\| [a-z])/.test(line));
  return lines.map((line) => line.replaceAll(/ +/g, ' '));
}

const LISTS = '## In every run';

/** Those of the lists of cases. */
function linesOf(page: string): string[] {
  return linesIn(page.slice(page.indexOf(LISTS)));
}

/** Those of the section by counterpart. */
function summaryOf(page: string): string[] {
  return linesIn(page.slice(0, page.indexOf(LISTS)));
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

  it('begins with a line for each counterpart, sorted, from the lines of both lists', () => {
    assert.match(afterFull, /^# Interop.*?\n## By counterpart\n.*\n## In every run\n/s);
    assert.deepEqual(summaryOf(afterFull), [
      '| gale | 1 | client | RC, IPv4 | 1024 | 1 of 1 | 2026-01-01 |',
      '| ping | 1 | client | RC, IPv4 | 1024 | 1 of 1 | 2026-01-01 |',
      '| storm | 1 | client | RC, IPv4 | 1024 | 0 of 1, 1 FAIL | 2026-01-01 |',
    ]);
  });

  it('sums up what the cases of a counterpart have met', () => {
    const of = (cells: Partial<InteropRow>, full = false): Outcome => ({
      ...outcome('ping', full),
      row: { ...row('ping'), ...cells },
    });
    const full = of({ role: 'server', transport: 'rdma_cm, SIDR, UD, IPv6', mtuBytes: 4096 }, true);
    const verbs = { transport: 'rdma_cm, IPv4, our verbs provider on rxe: RC, 1 at once' };
    const later = of({ version: '2', transport: 'REJ 8, BROKEN', mtuBytes: 256 });
    const first = interopPage([full], FULL_RUN, [full.row!], '');
    const page = interopPage([of(verbs), later], SMALL_RUN, [full.row!, row('ping', '3')], first);
    assert.deepEqual(summaryOf(page), [
      '| ping | 1; 2 | client; server ' +
        '| rdma_cm, SIDR, RC, UD, IPv4, IPv6, our verbs provider on rxe ' +
        '| 256, 1024, 4096 | 3 of 4, 1 not run | 2026-01-01 to 2026-02-02 |',
    ]);
  });

  it('a counterpart that no case has met has neither version nor day', () => {
    const page = interopPage([], SMALL_RUN, [row('gale')], '');
    assert.deepEqual(summaryOf(page), [
      '| gale | – | client | RC, IPv4 | 1024 | 0 of 1, 1 not run | – |',
    ]);
  });

  it('a piece of the full run changes the lines of its counterparts', () => {
    const page = recordPieces([outcome('storm', true)], SMALL_RUN, FULL_ROWS, afterFull);
    assert.deepEqual(summaryOf(page).slice(1), [
      '| ping | 1 | client | RC, IPv4 | 1024 | 1 of 1 | 2026-01-01 |',
      '| storm | 1 | client | RC, IPv4 | 1024 | 1 of 1 | 2026-02-02 |',
    ]);
  });

  it('is made again from its lists alone, which stay as they are', () => {
    assert.equal(remadeInteropPage(afterFull), afterFull);
    const lists = afterFull.slice(afterFull.indexOf(LISTS));
    assert.equal(remadeInteropPage(`# Another beginning\n\n${lists}`), afterFull);
  });
});
