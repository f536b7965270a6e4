/**
 * Two results of `--json`, measured at different times. Their rounds are not paired and the machine
 * drifts: only what lies wholly apart counts as changed.
 */
import { readFile } from 'node:fs/promises';
import { type Style, layOut, range } from '../compare/report.js';
import type { Summary } from '../compare/summary.js';

/** Four rounds against four lie wholly apart by chance in 2.9 % of cases. */
const LEAST_ROUNDS = 4;

export interface Result {
  readonly revision: string;
  readonly rows: readonly Summary[];
}

/** @throws Error when the file is not the result of a run against peers */
export async function readResult(file: string): Promise<Result> {
  const result = JSON.parse(await readFile(file, 'utf8')) as Partial<Result>;
  if (!Array.isArray(result.rows)) throw new Error(`${file}: no result of a run against peers`);
  return { revision: result.revision ?? 'unknown', rows: result.rows };
}

/** The rows that both have. */
export function compareResults(before: Result, after: Result, style: Style): string {
  const lines = after.rows.flatMap(({ label, unit, measurements }) => {
    const former = before.rows.find((row) => row.label === label);
    if (former === undefined) return [];
    const old = former.measurements.map(({ value }) => value);
    const now = measurements.map(({ value }) => value);
    const isRate = unit === 'GB/s' || unit === 'M/s';
    return [[label, unit, range(old), range(now), verdictOf(old, now, isRate)]];
  });
  const headings = ['row', 'what', before.revision, after.revision, 'verdict'];
  return layOut(headings, lines, style);
}

export function verdictOf(
  before: readonly number[],
  after: readonly number[],
  upIsBetter: boolean,
): string {
  if (Math.min(before.length, after.length) < LEAST_ROUNDS) return 'too few rounds';
  const isUp = Math.min(...after) > Math.max(...before);
  const isDown = Math.max(...after) < Math.min(...before);
  if (!isUp && !isDown) return 'noise';
  return isUp === upIsBetter ? '** better' : '** worse';
}
