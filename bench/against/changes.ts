/**
 * What changed beyond noise. Rounds are paired: after divided by before, measured one after the
 * other. A change is one that the sign test puts at 5 % or less by chance (six rounds of six on
 * one side, eight of nine, ...) and whose median is off by 2 % at least.
 */
import { cpuPerGib, type Summary } from '../compare/summary.js';
import { type Style, figure, layOut, range } from '../compare/report.js';
import { median, signTest } from '../compare/statistics.js';
import type { Measurement } from '../compare/cells.js';

const CHANCE = 0.05;
const LEAST = 0.02;

export interface Change {
  readonly label: string;
  readonly what: string;
  readonly before: number;
  readonly after: number;
  /** After divided by before, of each round. */
  readonly ratios: readonly number[];
  /** Of so one-sided an outcome without a change. */
  readonly chance: number;
  readonly verdict: 'better' | 'worse' | 'noise';
}

/** Up to three a row that both have: its figure, its p99, its CPU time. */
export function changesOf(summaries: readonly Summary[]): Change[] {
  return summaries.flatMap(({ label, unit, measurements, rivals }) => {
    const before = rivals[0]?.measurements;
    if (before === undefined || before.length * measurements.length === 0) return [];
    const isRate = unit === 'GB/s' || unit === 'M/s';
    const of = (what: string, value: (m: Measurement) => number, upIsBetter: boolean): Change =>
      change(label, what, before.map(value), measurements.map(value), upIsBetter);
    return [
      of(unit, (m) => m.value, isRate),
      ...(unit === 'us' ? [of('p99 us', (m) => m.p99 ?? NaN, false)] : []),
      ...(unit === 'GB/s' ? [of('CPU s/GiB', cpuPerGib, false)] : []),
    ];
  });
}

export function change(
  label: string,
  what: string,
  before: readonly number[],
  after: readonly number[],
  upIsBetter: boolean,
): Change {
  const ratios = after.map((value, i) => value / before[i]!).filter(Number.isFinite);
  const chance = signTest(ratios);
  const off = median(ratios) - 1;
  const isChange = chance <= CHANCE && Math.abs(off) >= LEAST;
  const verdict = !isChange ? 'noise' : off > 0 === upIsBetter ? 'better' : 'worse';
  return { label, what, before: median(before), after: median(after), ratios, chance, verdict };
}

const HEADINGS = ['row', 'what', 'before', 'after', 'after / before', 'chance', 'verdict'];

export function changeTable(changes: readonly Change[], style: Style): string {
  const lines = changes.map(({ label, what, before, after, ratios, chance, verdict }) => {
    const isFirst = !what.startsWith('p99') && !what.startsWith('CPU');
    const figures = [figure(before), figure(after), range(ratios), chance.toPrecision(2)];
    return [
      isFirst ? label : '',
      what,
      ...figures,
      verdict === 'noise' ? 'noise' : `** ${verdict}`,
    ];
  });
  return layOut(HEADINGS, lines, style);
}

/** One sentence. */
export function conclusion(changes: readonly Change[]): string {
  const list = (verdict: Change['verdict']): string[] =>
    changes
      .filter((each) => each.verdict === verdict)
      .map(({ label, what, ratios }) => `${label} [${what}] × ${figure(median(ratios))}`);
  const [better, worse] = [list('better'), list('worse')];
  if (better.length + worse.length === 0) return 'Nothing changed beyond noise.';
  return [
    ...(better.length > 0 ? [`Better: ${better.join('; ')}.`] : []),
    ...(worse.length > 0 ? [`Worse: ${worse.join('; ')}.`] : []),
  ].join('\n');
}
