/** Medians, ranges and ratios of what was measured, as a table and as JSON. */
import type { Measurement, Row } from './cells.js';

export interface Summary {
  readonly label: string;
  readonly unit: string;
  readonly ours: readonly Measurement[];
  readonly peer: readonly Measurement[];
  /** Ours divided by the peer's, of the same round. */
  readonly ratios: readonly number[];
}

const GIB = 2 ** 30;

export function summarize(
  row: Row,
  ours: readonly Measurement[],
  peer: readonly Measurement[],
): Summary {
  const ratios = ours.map((m, i) => m.value / (peer[i]?.value ?? NaN));
  return { label: row.label, unit: row.unit, ours, peer, ratios };
}

export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  const upper = sorted[middle] ?? NaN;
  return sorted.length % 2 === 1 ? upper : ((sorted[middle - 1] ?? NaN) + upper) / 2;
}

const HEADINGS = ['', 'softroce', 'Node TCP', 'ratio', 'p99', 'CPU s/GiB, both sides'];

/** The table, a line each row; ratios above 1 are better for rates, below 1 for times. */
export function table(summaries: readonly Summary[]): string {
  const lines = [HEADINGS, ...summaries.map(cellsOf)];
  const widths = HEADINGS.map((_, column) => Math.max(...lines.map((l) => l[column]!.length)));
  return lines
    .map((line) =>
      line
        .map((text, column) => text.padEnd(widths[column]!))
        .join('  ')
        .trimEnd(),
    )
    .join('\n');
}

function cellsOf({ label, unit, ours, peer, ratios }: Summary): string[] {
  const spread = (all: readonly Measurement[]): string => range(all.map((m) => m.value));
  const isTime = unit === 'us';
  return [
    label,
    `${spread(ours)} ${unit}`,
    `${spread(peer)} ${unit}`,
    range(ratios),
    isTime ? `${p99(ours)} / ${p99(peer)}` : '',
    isTime || unit === 'M/s' ? '' : `${cpu(ours)} / ${cpu(peer)}`,
  ];
}

function range(values: readonly number[]): string {
  const range = `${figure(Math.min(...values))}–${figure(Math.max(...values))}`;
  return `${figure(median(values))} (${range})`;
}

function p99(all: readonly Measurement[]): string {
  return figure(median(all.map((m) => m.p99 ?? NaN)));
}

function cpu(all: readonly Measurement[]): string {
  return figure(median(all.map((m) => (m.cpuSeconds * GIB) / m.bytes)));
}

function figure(value: number): string {
  return value >= 100 ? value.toFixed(0) : value.toPrecision(3);
}
