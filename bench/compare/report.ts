/** The report: a line for ours and one for each rival. */
import type { Cell, Measurement } from './cells.js';
import { CONTENDERS } from './contender.js';
import { cpuPerGib, type RivalSummary, type Summary, type Verdict } from './summary.js';
import { median } from './statistics.js';

const HEADINGS = [
  'row',
  'who',
  'median (range)',
  'p99',
  'CPU s/GiB',
  'softroce / this',
  'goal',
] as const;

export type Style = 'text' | 'markdown';

/** Ratios above 1 are better for rates, below 1 for times. */
export function table(summaries: readonly Summary[]): string {
  return layOut(HEADINGS, summaries.flatMap(linesOf), 'text');
}

/** Lines of cells under headings. */
export function layOut(
  headings: readonly string[],
  lines: readonly (readonly string[])[],
  style: Style,
): string {
  if (style === 'markdown') {
    const rule = headings.map(() => '---');
    return [headings, rule, ...lines].map((line) => `| ${line.join(' | ')} |`).join('\n');
  }
  const widths = headings.map((heading, column) =>
    Math.max(heading.length, ...lines.map((line) => line[column]!.length)),
  );
  const pad = (text: string, column: number): string => text.padEnd(widths[column]!);
  return [headings, ...lines].map((line) => line.map(pad).join('  ').trimEnd()).join('\n');
}

function linesOf(summary: Summary): string[][] {
  const { label, ours, measurements, verdicts, rivals } = summary;
  if (summary.failure !== undefined) {
    return [[label, nameOf(ours.contender), summary.failure, '', '', '', '']];
  }
  const own = [label, nameOf(ours.contender), ...figures(summary, measurements), '', say(verdicts)];
  return [own, ...rivals.map((rival) => rivalLine(summary, rival))];
}

function rivalLine(summary: Summary, rival: RivalSummary): string[] {
  const { contender, measurements, ratios, verdicts, cell } = rival;
  const name = nameOf(contender) + difference(summary.ours, cell);
  if (rival.failure !== undefined) {
    return ['', name, 'none', '', '', '', rival.failure];
  }
  return ['', name, ...figures(summary, measurements), range(ratios), say(verdicts)];
}

/** Ours against ours: by what they differ. */
function difference(ours: Cell, { contender, endpoints, mtuBytes }: Cell): string {
  if (contender !== 'softroce') return '';
  if (ours.contender === 'shm') return ', UDP';
  if (CONTENDERS[ours.contender]?.entry !== undefined) return ', DAT';
  if (endpoints !== ours.endpoints) return `, ${endpoints} EP`;
  return mtuBytes === ours.mtuBytes ? ', native port' : ', largest MTU';
}

export function nameOf(contender: string): string {
  return CONTENDERS[contender]?.label ?? contender;
}

function figures({ unit }: Summary, all: readonly Measurement[]): string[] {
  const isStream = unit === 'GB/s';
  return [
    `${range(all.map((m) => m.value))} ${unit}`,
    unit === 'us' ? figure(median(all.map((m) => m.p99 ?? NaN))) : '',
    isStream ? figure(median(all.map(cpuPerGib))) : '',
  ];
}

function say(verdicts: readonly Verdict[]): string {
  return verdicts
    .map(({ what, goal, value, met }) => {
      const subject = what === 'ratio' ? '' : `${what} `;
      const got = what === 'ratio' ? '' : ` (${figure(value)})`;
      return `${subject}${goal}${got} ${met ? 'met' : 'NOT met'}`;
    })
    .join('; ');
}

export function range(values: readonly number[]): string {
  if (values.length === 0) return 'none';
  const range = `${figure(Math.min(...values))}–${figure(Math.max(...values))}`;
  return `${figure(median(values))} (${range})`;
}

export function figure(value: number): string {
  if (!Number.isFinite(value)) return '–';
  return value >= 100 ? value.toFixed(0) : value.toPrecision(3);
}
