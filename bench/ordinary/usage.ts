/** Resources that a process has used: CPU time, switches, turns of its event loop. */
import { performance } from 'node:perf_hooks';

export interface Usage {
  readonly ms: number;
  readonly cpuUs: number;
  readonly voluntary: number;
  readonly involuntary: number;
  /** Turns of the event loop. */
  readonly turns: number;
  /** Time that the event loop has slept. */
  readonly idleMs: number;
  /** Turns of a device in which it did nothing; NaN if the process has no device that counts. */
  readonly emptyTurns: number;
}

/** The process so far. */
export function usage(counters?: Readonly<Record<string, number>>): Usage {
  const used = process.resourceUsage();
  return {
    ms: performance.now(),
    cpuUs: used.userCPUTime + used.systemCPUTime,
    voluntary: used.voluntaryContextSwitches,
    involuntary: used.involuntaryContextSwitches,
    turns: performance.nodeTiming.uvMetricsInfo.loopCount,
    idleMs: performance.eventLoopUtilization().idle,
    emptyTurns: counters?.['emptyTurns'] ?? NaN,
  };
}

function combine(a: Usage, b: Usage, how: (a: number, b: number) => number): Usage {
  const keys = Object.keys(a) as (keyof Usage)[];
  return Object.fromEntries(keys.map((key) => [key, how(a[key], b[key])])) as unknown as Usage;
}

export function used(before: Usage, after: Usage): Usage {
  return combine(after, before, (a, b) => a - b);
}

export function together(all: readonly Usage[]): Usage {
  return all.reduce((a, b) => combine(a, b, (x, y) => (Number.isNaN(x) ? y : x + (y || 0))));
}
