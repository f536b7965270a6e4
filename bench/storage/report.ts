/** Tables of what was measured. */
import { median } from '../compare/statistics.js';
import type { Cell, Contender, Sample } from './cells.js';

/** Samples of one cell, by contender, one for each round. */
export interface Row {
  readonly cell: Cell;
  readonly samples: ReadonlyMap<string, readonly Sample[]>;
}

const MEBI = 2 ** 20;

/** IOPS of small commands, MB/s of large ones. */
export function rate({ bytes }: Cell, { commands, seconds }: Sample): number {
  return bytes < MEBI ? commands / seconds : (commands * bytes) / seconds / 1e6;
}

/** The first contender beside the second, round by round: what ran side by side. */
export function ratios({ cell, samples }: Row, one: string, other: string): number[] {
  const ones = samples.get(one) ?? [];
  const others = samples.get(other) ?? [];
  return ones.map((sample, round) => rate(cell, sample) / rate(cell, others[round]!));
}

export function table(rows: readonly Row[], contenders: readonly Contender[]): string {
  const [first, ...rest] = contenders.map(({ name }) => name);
  const names = contenders.map(({ name }) => name);
  const head = [
    'cell',
    ...names,
    ...rest.map((name) => `${first} / ${name}`),
    ...names.map((name) => `${name}, us of CPU`),
  ];
  const lines = rows.map((row) => {
    const { bytes, depth, operation } = row.cell;
    const unit = bytes < MEBI ? 'IOPS' : 'MB/s';
    const middle = (name: string, value: (sample: Sample) => number): string =>
      Math.round(median((row.samples.get(name) ?? []).map(value))).toString();
    return [
      `${operation} ${bytes / 1024} KiB, depth ${depth}, ${unit}`,
      ...names.map((name) => middle(name, (sample) => rate(row.cell, sample))),
      ...rest.map((name) => median(ratios(row, first!, name)).toFixed(2)),
      ...names.map((name) => middle(name, ({ cpuUs }) => cpuUs)),
    ];
  });
  return [head, head.map(() => '---'), ...lines]
    .map((line) => `| ${line.join(' | ')} |`)
    .join('\n');
}
