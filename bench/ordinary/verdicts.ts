/** What the rounds of a run came to, and which goals hold. */
import { median } from '../compare/statistics.js';
import { CONTROL, type Goal, type Metric, type Row, ROWS } from './rows.js';
import type { Result } from './run.js';
import type { Sample } from './team.js';

export interface Verdict extends Goal {
  readonly value: number;
  readonly met: boolean;
}

/** A place in which Node TCP beside itself is further off than that measures nothing now. */
const SAME = { least: 0.9, most: 1.1 };

/** Ours divided by theirs. */
const METRICS: Readonly<Record<Metric, (ours: Sample, theirs: Sample) => number>> = {
  mean: (ours, theirs) => ours.mean / theirs.mean,
  p99: (ours, theirs) => ours.p99 / theirs.p99,
  cpu: (ours, theirs) => ours.cpu / theirs.cpu,
  rate: (ours, theirs) => theirs.mean / ours.mean,
  share: (ours) => ours.share ?? NaN,
  cpuMs: (ours) => ours.cpu / 1000,
};

/** Round by round. */
export function ratios(metric: Metric, ours: Result, theirs: Result): number[] {
  const of = METRICS[metric];
  return ours.samples.flatMap((sample, i) => {
    const other = theirs.samples[i];
    return other === undefined ? [] : [of(sample, other)];
  });
}

export function find(
  results: readonly Result[],
  { place, row }: Pick<Result, 'place' | 'row'>,
  program: string,
): Result | undefined {
  return results.find(
    (each) => each.place === place && each.row === row && each.program === program,
  );
}

/** Median of Node TCP divided by itself, and whether that is near enough to 1. */
export function control(
  results: readonly Result[],
  place: string,
): { readonly ratio: number; readonly isMeasurable: boolean } {
  const [one, other] = ['again', 'tcp'].map((program) =>
    find(results, { place, row: CONTROL.label }, program),
  );
  if (one === undefined || other === undefined) return { ratio: NaN, isMeasurable: false };
  const ratio = median(ratios('mean', one, other));
  const isSame = ratio >= SAME.least && ratio <= SAME.most;
  return { ratio, isMeasurable: isSame && isSettled(one) && isSettled(other) };
}

/** A figure counts only if its program had warmed up. */
export function isSettled({ settling }: Result): boolean {
  return settling?.settled ?? true;
}

/** Goals of a result; none where it, or its peer, has no figures. */
export function verdictsOf(results: readonly Result[], result: Result): Verdict[] {
  const isOf = ({ label, isCold }: Row): boolean =>
    result.row === label || (isCold === true && result.row.startsWith(label));
  const row = ROWS.find(isOf);
  const goals = row?.goals[result.group] ?? [];
  return goals.flatMap((goal) => {
    const isMeant = goal.step === undefined || result.row === `${row!.label}, ${goal.step}`;
    if (goal.program !== result.program || !isMeant || !isSettled(result)) return [];
    const isAlone = goal.metric === 'share' || goal.metric === 'cpuMs';
    const peer = isAlone ? result : find(results, result, goal.peer);
    if (peer === undefined || !isSettled(peer)) return [];
    const value = median(ratios(goal.metric, result, peer));
    return [{ ...goal, value, met: isMet(goal, value) }];
  });
}

function isMet({ metric, limit }: Goal, value: number): boolean {
  if (metric === 'rate') return value >= limit;
  return metric === 'share' ? value >= limit && value <= 1 - limit : value <= limit;
}
