/**
 * Bounds of the waits that only catch what hangs. They are stated for an idle machine, and are
 * longer on one that has other things to do: nothing that works fails because of them, and what
 * hangs still ends. What a protocol's own clock counts is no such wait: that stays real time.
 *
 * How busy the machine is, the system knows: the tasks that have wanted a processor in the last
 * minute. A program in a guest cannot see what else the host does: it is told in its environment.
 * The run of the guests itself measures more closely (test/guest/machine-time.ts).
 */
import { availableParallelism, loadavg } from 'node:os';

export const SLOWDOWN_VARIABLE = 'DAPL_TEST_SLOWDOWN';
/** However busy the machine, a bound is never longer than so many times itself. */
export const MAX_SLOWDOWN = 20;

/** Tasks for each processor: so many times as long things take that are one of them. */
function crowd(): number {
  const [lastMinute = 0] = loadavg();
  return lastMinute / availableParallelism();
}

const told = process.env[SLOWDOWN_VARIABLE];
let slowdown = told === undefined ? crowd : (): number => Number(told);

/** For a run that measures it. @returns what takes it back */
export function knowSlowdown(measured: () => number): () => void {
  const before = slowdown;
  slowdown = measured;
  return () => (slowdown = before);
}

/** Real milliseconds, from now on, for what are that many at most on an idle machine. */
export function patience(ms: number): number {
  const times = slowdown();
  return Math.ceil(ms * (times >= 1 ? Math.min(times, MAX_SLOWDOWN) : 1));
}

/** Real time, for what a protocol's own clock counts: how long a fault lasts, how late it is. */
export function paused(realMs: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, realMs));
}
