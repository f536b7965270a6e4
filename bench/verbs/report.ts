/** Medians, ranges and ratios of what was measured, as a table and as JSON. */
import { isLatency, type Result, type Work } from './workload.js';

/** perftest over rxe; the DAT API over the same rxe; our own transport, in the same guests. */
export const SIDES = ['perftest', 'verbs', 'softroce'] as const;
export type Side = (typeof SIDES)[number];

export interface Cell {
  readonly work: Work;
  /** Of each side that was measured, a result each round. */
  readonly results: Partial<Record<Side, Result[]>>;
}

/** One table each test, a line each size; verbs divided by perftest of the same round. */
export function tables(cells: readonly Cell[]): string {
  const tests = [...new Set(cells.map(({ work }) => work.test))];
  return tests
    .map((test) => {
      const rows = cells.filter(({ work }) => work.test === test).map(lineOf);
      const unit = isLatency(test) ? 'half round trip, us: median (99th percentile)' : 'MiB/s';
      const heading = ['bytes', ...SIDES, 'verbs / perftest'];
      return `${test}, ${unit}\n\n${markdown([heading, ...rows])}`;
    })
    .join('\n\n');
}

/** Ours divided by perftest's, round by round. */
export function ratiosOf({ results }: Cell): number[] {
  const { verbs = [], perftest = [] } = results;
  return verbs.map((result, round) => {
    const other = perftest[round];
    return other === undefined ? NaN : valueOf(result) / valueOf(other);
  });
}

export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  const upper = sorted[middle] ?? NaN;
  return sorted.length % 2 === 1 ? upper : ((sorted[middle - 1] ?? NaN) + upper) / 2;
}

function valueOf(result: Result): number {
  return 'mibps' in result ? result.mibps : result.p50;
}

function lineOf(cell: Cell): string[] {
  const ratios = ratiosOf(cell);
  const range = ratios.length > 1 ? ` (${extremes(ratios)})` : '';
  return [
    String(cell.work.bytes),
    ...SIDES.map((side) => textOf(cell.results[side] ?? [])),
    ratios.length === 0 ? '' : `${median(ratios).toFixed(2)}${range}`,
  ];
}

function textOf(results: readonly Result[]): string {
  if (results.length === 0) return '';
  const middle = figure(median(results.map(valueOf)));
  const tails = results.flatMap((result) => ('p99' in result ? [result.p99] : []));
  return tails.length === 0 ? middle : `${middle} (${figure(median(tails))})`;
}

function extremes(values: readonly number[]): string {
  return `${Math.min(...values).toFixed(2)}–${Math.max(...values).toFixed(2)}`;
}

function figure(value: number): string {
  return value >= 100 ? value.toFixed(0) : value.toPrecision(3);
}

function markdown(lines: readonly (readonly string[])[]): string {
  const [heading = []] = lines;
  const widths = heading.map((_, at) => Math.max(...lines.map((line) => line[at]?.length ?? 0)));
  const row = (line: readonly string[]): string =>
    `| ${line.map((text, at) => text.padStart(widths[at] ?? 0)).join(' | ')} |`;
  const rule = `| ${widths.map((width) => `${'-'.repeat(width - 1)}:`).join(' | ')} |`;
  return [row(heading), rule, ...lines.slice(1).map(row)].join('\n');
}
