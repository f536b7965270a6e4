// A runner as small as its job: a line and a bound for each case, two labs at work.
import { machineTime } from './machine-time.js';

export interface InteropRow {
  readonly counterpart: string;
  readonly version: string;
  /** What our side is; the counterpart has the other part. */
  readonly role: string;
  readonly transport: string;
  readonly mtuBytes: number;
}

export interface Case {
  readonly name: string;
  /** What it proves, for docs/interop.md; a case about the lab itself has none. */
  readonly row?: InteropRow;
  /** True for a case of `npm run test:guest:full` alone. Every kind of case is in the small run. */
  readonly full?: boolean;
  /** How many guests its lab must have. Default 1. */
  readonly guests?: number;
  /** True for what takes more than a minute on an idle machine. */
  readonly isLong?: boolean;
  /** Milliseconds of an idle machine (machine-time.ts) until it has failed. Default 90000. */
  readonly timeoutMs?: number;
  readonly run: () => Promise<void>;
}

export interface Outcome {
  readonly name: string;
  readonly row: InteropRow | undefined;
  readonly full: boolean;
  readonly passed: boolean;
  readonly seconds: number;
}

const CASE_TIMEOUT_MS = 90_000;

/** A lab and the cases over it. All lanes of a run have the same cases. */
export interface Lane {
  readonly cases: readonly Case[];
  readonly guestCount: number;
  /** What its guests have used of the processor till now. */
  readonly cpuSeconds: () => number;
  /** Puts right what a failed case left behind: the next is judged by what it does itself. */
  readonly recover: () => Promise<void>;
}

/**
 * Index of the case that a lane takes next, -1 if there is none for it: those first that few lanes
 * can run, the long ones before the others, so that all lanes come to their ends together.
 */
export function nextOf(
  cases: readonly Case[],
  taken: ReadonlySet<number>,
  guestCount: number,
): number {
  const rank = ({ guests = 1, isLong = false }: Case): number => 2 * guests + (isLong ? 1 : 0);
  let best = -1;
  let bestRank = 0;
  for (const [index, candidate] of cases.entries()) {
    if (taken.has(index) || (candidate.guests ?? 1) > guestCount) continue;
    if (rank(candidate) <= bestRank) continue;
    [best, bestRank] = [index, rank(candidate)];
  }
  return best;
}

/** Each lane takes cases that it can run, until there are none. */
export async function runCases(
  lanes: readonly Lane[],
  print: (line: string) => void,
): Promise<Outcome[]> {
  const outcomes: Outcome[] = [];
  const taken = new Set<number>();
  const runLane = async ({ cases, guestCount, cpuSeconds, recover }: Lane): Promise<void> => {
    for (;;) {
      const index = nextOf(cases, taken, guestCount);
      const next = cases[index];
      if (next === undefined) return;
      taken.add(index);
      const usedBefore = cpuSeconds();
      const { outcome, error } = await runCase(next);
      outcomes[index] = outcome;
      const verdict = outcome.passed ? 'ok   ' : 'FAIL ';
      const used = (cpuSeconds() - usedBefore).toFixed(1);
      print(`${verdict} ${next.name} (${outcome.seconds.toFixed(1)} s, guests used ${used} s)`);
      if (error === undefined) continue;
      print(error.replace(/^/gm, '      '));
      await recover().catch((reason: unknown) => {
        print(`      the lab did not recover: ${String(reason)}`);
      });
    }
  };
  await Promise.all(lanes.map(runLane));
  const missed = lanes[0]?.cases.find((_, at) => !taken.has(at));
  if (missed !== undefined) throw new Error(`no lab has guests enough for: ${missed.name}`);
  return outcomes;
}

async function runCase(chosen: Case): Promise<{ outcome: Outcome; error: string | undefined }> {
  const { name, row, run, full = false, timeoutMs = CASE_TIMEOUT_MS } = chosen;
  const start = performance.now();
  const error = await failureOf(run, timeoutMs);
  const seconds = (performance.now() - start) / 1000;
  return { outcome: { name, row, full, passed: error === undefined, seconds }, error };
}

async function failureOf(run: () => Promise<void>, timeoutMs: number): Promise<string | undefined> {
  let cancel = (): void => undefined;
  const late = new Promise<never>((_, reject) => {
    cancel = machineTime.after(timeoutMs, () => {
      reject(new Error(`not done in ${timeoutMs} ms`));
    });
  });
  try {
    await Promise.race([run(), late]);
    return undefined;
  } catch (error) {
    return error instanceof Error ? (error.stack ?? error.message) : String(error);
  } finally {
    cancel();
  }
}
