/** The report as one Markdown table: a line each row, a column each peer. */
import type { Measurement } from './cells.js';
import { CONTENDERS, PEERS } from './contender.js';
import { figure, layOut, range } from './report.js';
import { median } from './statistics.js';
import { type RivalSummary, type Summary, type Verdict, cpuPerGib } from './summary.js';

const OWN_HEADINGS = ['row', 'softroce', 'p99, us', 'CPU s/GiB'];

/**
 * In a peer's column: the ratio, ours divided by the peer's, with its goal (in bold when it is not
 * met), and the peer's own median in brackets.
 */
export function matrix(summaries: readonly Summary[]): string {
  const present = (contender: string): boolean =>
    summaries.some(({ rivals }) => rivals.some((rival) => rival.contender === contender));
  const peers = PEERS.filter(present);
  const headings = [...OWN_HEADINGS, ...peers.map((id) => CONTENDERS[id]!.label), 'our own'];
  const lines = summaries.map((summary) => [
    ...ownCells(summary),
    ...peers.map((id) => rivalCell(summary.rivals.find((rival) => rival.contender === id))),
    rivalCell(summary.rivals.find(({ contender }) => !PEERS.includes(contender))),
  ]);
  return layOut(headings, lines, 'markdown');
}

function ownCells(summary: Summary): string[] {
  const { label, unit, measurements, verdicts, rivals, failure } = summary;
  if (failure !== undefined) return [label, failure, '', ''];
  const of = (what: string): Verdict | undefined => verdicts.find((each) => each.what === what);
  const tail = of('p99/p50');
  const value = of(unit);
  const spread = `${range(measurements.map((m) => m.value))} ${unit}`;
  return [
    label,
    value === undefined ? spread : `${spread}: ${judged(value)}`,
    unit !== 'us' ? '' : `${p99(measurements)}${tail ? `; / p50 ${judged(tail)}` : ''}`,
    unit !== 'GB/s' ? '' : `${figure(median(measurements.map(cpuPerGib)))}${cpuVerdict(rivals)}`,
  ];
}

function cpuVerdict(rivals: readonly RivalSummary[]): string {
  const verdict = rivals.flatMap(({ verdicts }) => verdicts).find(({ what }) => what === 'CPU');
  return verdict === undefined ? '' : `; / TCP's ${judged(verdict)}`;
}

function rivalCell(rival: RivalSummary | undefined): string {
  if (rival === undefined) return '';
  if (rival.failure !== undefined) return rival.failure;
  const verdict = rival.verdicts.find(({ what }) => what === 'ratio');
  const ratio = verdict === undefined ? figure(median(rival.ratios)) : judged(verdict);
  const more = rival.verdicts.find(({ what }) => what === 'more us');
  const difference = more === undefined ? '' : `; ${judged(more)} us more`;
  return `${ratio} (${figure(median(rival.measurements.map((m) => m.value)))})${difference}`;
}

/** The value and its goal, with the sign that holds between them. */
function judged({ goal, value, met }: Verdict): string {
  const [sign = '', bound = ''] = goal.split(' ');
  if (met) return `${figure(value)} ${sign} ${bound}`;
  return `**${figure(value)} ${sign === '≥' ? '<' : '>'} ${bound}**`;
}

function p99(all: readonly Measurement[]): string {
  return figure(median(all.map((m) => m.p99 ?? NaN)));
}
