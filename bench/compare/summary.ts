/** What the rounds of a row came to, and whether the goals are met. */
import type { Cell, Measurement } from './cells.js';
import type { Rival, Row, Unit } from './rows.js';
import { median } from './statistics.js';

/** A goal beside what was measured. */
export interface Verdict {
  readonly what: string;
  readonly goal: string;
  readonly value: number;
  readonly met: boolean;
}

export interface RivalSummary {
  readonly contender: string;
  readonly cell: Cell;
  /** Why there is none of what follows: the peer could not run. */
  readonly failure?: string;
  readonly measurements: readonly Measurement[];
  /** Ours divided by theirs, of the same round. */
  readonly ratios: readonly number[];
  /** Of times and rates of messages: microseconds a message, ours less theirs, by round. */
  readonly moreUs: readonly number[];
  /** CPU seconds per GiB, ours divided by theirs, of the same round. */
  readonly cpuRatios: readonly number[];
  readonly verdicts: readonly Verdict[];
}

export interface Summary {
  readonly label: string;
  readonly unit: Unit;
  readonly ours: Cell;
  /** Why there are no measurements. */
  readonly failure?: string;
  readonly measurements: readonly Measurement[];
  readonly verdicts: readonly Verdict[];
  readonly rivals: readonly RivalSummary[];
}

const GIB = 2 ** 30;

/** Of both sides, in seconds. */
export function cpuPerGib({ cpuSeconds, bytes }: Measurement): number {
  return (cpuSeconds * GIB) / bytes;
}

/**
 * @param measured of a cell, by its name
 * @param failures why a contender could not run, or a cell has no figures, by its name
 */
export function summarize(
  row: Row,
  measured: (name: string) => readonly Measurement[],
  failures: ReadonlyMap<string, string> = new Map(),
): Summary {
  const measurements = measured(row.ours.name);
  const rivals = row.rivals.flatMap((rival) => {
    const { contender, name } = rival.cell;
    const failure = failures.get(contender) ?? failures.get(name);
    if (failure !== undefined) return [failedRival(rival.cell, failure)];
    const theirs = measured(rival.cell.name);
    return theirs.length === 0 ? [] : [summarizeRival(row, rival, measurements, theirs)];
  });
  const { label, unit, ours } = row;
  const failure = failures.get(ours.name);
  if (failure !== undefined) {
    return { label, unit, ours, failure, measurements: [], rivals: [], verdicts: [] };
  }
  return { label, unit, ours, measurements, rivals, verdicts: ownVerdicts(row, measurements) };
}

function failedRival(cell: Cell, failure: string): RivalSummary {
  const none = { measurements: [], ratios: [], moreUs: [], cpuRatios: [], verdicts: [] };
  return { contender: cell.contender, cell, failure, ...none };
}

function summarizeRival(
  { unit }: Row,
  { cell, goal, moreUsGoal, cpuGoal }: Rival,
  ours: readonly Measurement[],
  theirs: readonly Measurement[],
): RivalSummary {
  const pairs = ours.slice(0, theirs.length).map((mine, i) => [mine, theirs[i]!] as const);
  const ratios = pairs.map(([mine, other]) => mine.value / other.value);
  const moreUs = pairs.map(([mine, other]) => usOf(unit, mine) - usOf(unit, other));
  const cpuRatios = pairs.map(([mine, other]) => cpuPerGib(mine) / cpuPerGib(other));
  const verdicts = [
    ...(goal === undefined ? [] : [judge('ratio', unit, goal, median(ratios))]),
    ...(moreUsGoal === undefined ? [] : [judge('more us', 'us', moreUsGoal, median(moreUs))]),
    ...(cpuGoal === undefined ? [] : [judge('CPU', 'us', cpuGoal, median(cpuRatios))]),
  ];
  const { contender } = cell;
  return { contender, cell, measurements: theirs, ratios, moreUs, cpuRatios, verdicts };
}

/** From one message to the next, or of half a round trip. */
function usOf(unit: Unit, { value }: Measurement): number {
  return unit === 'M/s' ? 1 / value : value;
}

function ownVerdicts({ unit, goal, tailGoal }: Row, all: readonly Measurement[]): Verdict[] {
  const tail = median(all.map(({ value, p99 = NaN }) => p99 / value));
  return [
    ...(goal === undefined ? [] : [judge(unit, unit, goal, median(all.map((m) => m.value)))]),
    ...(tailGoal === undefined ? [] : [judge('p99/p50', 'us', tailGoal, tail)]),
  ];
}

/** Rates are to be high; times and CPU are to be low. */
function judge(what: string, unit: Unit, goal: number, value: number): Verdict {
  const isRate = unit === 'GB/s' || unit === 'M/s';
  const met = isRate ? value >= goal : value <= goal;
  return { what, goal: `${isRate ? '≥' : '≤'} ${goal}`, value, met };
}
