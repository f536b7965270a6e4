/**
 * Bounds of the waits that are a program's own, in a case or in what it starts, on the host or in a
 * guest. What a case has started cannot see what else the machine does (a guest sees nothing of
 * it): it is told in its environment. The run itself measures (machine-time.ts).
 */

export const SLOWDOWN_VARIABLE = 'DAPL_GUEST_SLOWDOWN';

let slowdown = (): number => Number(process.env[SLOWDOWN_VARIABLE] ?? 1);

/** For the run, which measures it. */
export function knowSlowdown(measured: () => number): void {
  slowdown = measured;
}

/** Real milliseconds, from now on, for what are that many on an idle machine. */
export function patience(ms: number): number {
  const times = slowdown();
  return Math.ceil(ms * (times >= 1 ? times : 1));
}

/** Real time, for what a protocol's own clock counts: how long a fault lasts, how late it is. */
export function paused(realMs: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, realMs));
}
