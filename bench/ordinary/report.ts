/** Tables of a run. */
import { type Change, change } from '../against/changes.js';
import { figure, layOut, type Style } from '../compare/report.js';
import { median } from '../compare/statistics.js';
import { PROGRAMS } from './programs.js';
import { BEFORE, type Outcome, type Result } from './run.js';
import type { Sample } from './team.js';
import { control, find, isSettled, ratios, type Verdict, verdictsOf } from './verdicts.js';
import type { RunDescription } from '../compare/describe-run.js';

const HEADINGS = [
  'row',
  'program',
  'mean us',
  'p50',
  'p99',
  'CPU us',
  'switches: voluntary, involuntary',
  'turns (in vain)',
  'polls',
  'warm after',
  '÷ peer: mean, p99, CPU',
  'goals',
] as const;

/** A table for each place. */
export function ordinaryTables({ results, leftOut }: Outcome, style: Style): string {
  const places = [...new Set(results.map(({ place }) => place))];
  const tables = places.map((place) => {
    const here = results.filter((each) => each.place === place);
    const { ratio, isMeasurable } = control(results, place);
    const verdict = isMeasurable ? '' : ': not measurable now';
    const title = `${place}${verdict} (Node TCP against itself: ${figure(ratio)})`;
    const lines = here.map((result, i) => {
      const isFirst = here[i - 1]?.row !== result.row;
      return [isFirst ? result.row : '', ...lineOf(here, result, isMeasurable, style)];
    });
    return `${style === 'markdown' ? `**${title}**` : title}\n\n${layOut(HEADINGS, lines, style)}`;
  });
  const absent = Object.entries(leftOut).map(([place, why]) => `${place}: left out, ${why}`);
  return [...tables, ...absent].join('\n\n');
}

function lineOf(
  here: readonly Result[],
  result: Result,
  isMeasurable: boolean,
  style: Style,
): string[] {
  const { program, samples, settling, failure } = result;
  const rest = (text: string): string[] => [text, ...HEADINGS.slice(3).map(() => '')];
  const label = PROGRAMS[program.replace(BEFORE, '')]!.label;
  if (failure !== undefined) return [label, ...rest(`FAILED: ${failure}`)];
  const warm = settling === undefined ? '' : `${settling.seconds.toFixed(1)} s`;
  if (!isSettled(result)) return [label, ...rest(`did not settle in ${warm}`)];
  const of = (what: (sample: Sample) => number): string => figure(median(samples.map(what)));
  const peer = find(here, result, program === 'forward' ? 'relays' : 'tcp');
  const beside = (metric: 'mean' | 'p99' | 'cpu'): string =>
    figure(median(ratios(metric, result, peer!)));
  const isCompared = peer !== undefined && peer !== result && isSettled(peer);
  return [
    label,
    of(({ mean }) => mean),
    of(({ p50 }) => p50),
    of(({ p99 }) => p99),
    of(({ cpu }) => cpu),
    `${of(({ voluntary }) => voluntary)}, ${of(({ involuntary }) => involuntary)}`,
    `${of(({ turns }) => turns)} (${of(({ emptyTurns }) => emptyTurns)})`,
    mostOf(samples.map(({ polls }) => polls)),
    warm,
    isCompared ? `${beside('mean')}, ${beside('p99')}, ${beside('cpu')}` : '',
    isMeasurable
      ? verdictsOf(here, result)
          .map((each) => verdictText(each, style))
          .join('; ')
      : '',
  ];
}

function mostOf(texts: readonly string[]): string {
  const count = (text: string): number => texts.filter((each) => each === text).length;
  return [...texts].sort((a, b) => count(b) - count(a))[0] ?? '';
}

function verdictText({ metric, peer, limit, value, met }: Verdict, style: Style): string {
  const sign = metric === 'rate' || metric === 'share' ? '≥' : '≤';
  const beside = peer === 'unix' ? ' of a Unix socket' : '';
  const unit = metric === 'cpuMs' ? ' ms' : '';
  const name = metric === 'cpuMs' ? 'CPU' : metric;
  const text = `${name}${beside} ${sign} ${limit}${unit}: ${figure(value)}`;
  if (met) return `${text} met`;
  return style === 'markdown' ? `**${text} missed**` : `${text} MISSED`;
}

/** Ours beside the same of another revision. */
export function changesOfOrdinary({ results }: Outcome): Change[] {
  return results.flatMap((result) => {
    const before = find(results, result, BEFORE + result.program);
    if (before === undefined || !isSettled(result) || !isSettled(before)) return [];
    const label = `${result.place}: ${result.row}, ${PROGRAMS[result.program]!.label}`;
    const of = (what: string, value: (sample: Sample) => number): Change =>
      change(label, what, before.samples.map(value), result.samples.map(value), false);
    return [
      of('mean us', ({ mean }) => mean),
      of('p99 us', ({ p99 }) => p99),
      of('CPU us', ({ cpu }) => cpu),
    ];
  });
}

const BEGIN = '<!-- bench:ordinary -->';
const END = '<!-- /bench:ordinary -->';

/**
 * The page with other tables between its two marks.
 * @throws Error for a page without them
 */
export function record(
  page: string,
  tables: string,
  { revision, node, machine }: RunDescription,
): string {
  const [from, to] = [page.indexOf(BEGIN), page.indexOf(END)];
  if (from < 0 || to < from) throw new Error(`the page has no ${BEGIN} and ${END}`);
  const { cpus, cpu, kernel } = machine;
  const about = `Revision ${revision}, Node ${node}, ${cpus} cores of ${cpu}, Linux ${kernel}.`;
  return `${page.slice(0, from)}${BEGIN}\n\n${about}\n\n${tables}\n\n${page.slice(to)}`;
}
