/**
 * How long the suite waits for work without a completion event. By default that is twice as long as
 * the slowest of the last connections took. A connection takes three messages and work of both
 * sides, so the wait is long on a slow or busy machine and short on a fast one.
 */
import type { CompliancePair } from './fixture.js';

/** The number of connections that count. */
const REMEMBERED = 16;
/** Used before the first connection. */
const FIRST_MS = 20;
/** Longer than the retries and timers that behaviours use. */
const LEAST_MS = 5;
const MOST_MS = 2000;

export class Pace {
  private readonly tookMs: number[] = [];

  /** Records how long a connection took. */
  note(ms: number): void {
    this.tookMs.push(ms);
    if (this.tookMs.length > REMEMBERED) this.tookMs.shift();
  }

  /** The present length of a wait. */
  get settleMs(): number {
    if (this.tookMs.length === 0) return FIRST_MS;
    return Math.min(MOST_MS, Math.max(LEAST_MS, 2 * Math.max(...this.tookMs)));
  }
}

const pace = new Pace();

/** Runs a connection attempt and records its time. */
export async function timed<T>(connecting: () => Promise<T>): Promise<T> {
  const before = performance.now();
  const result = await connecting();
  pace.note(performance.now() - before);
  return result;
}

/** Waits until pending work is done. */
export async function settle(pair: CompliancePair): Promise<void> {
  if (pair.settle !== undefined) await pair.settle();
  else await sleep(pace.settleMs);
}

/** Lets time pass, real time or the pair's own. */
export async function pass(pair: CompliancePair, ms: number): Promise<void> {
  const end = performance.now() + ms;
  do await settle(pair);
  while (pair.settle === undefined && performance.now() < end);
}

function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

/**
 * How long a behaviour waits for an expected event, in ms: longer than any success takes. A slow
 * machine, such as an emulated one, needs more: set `DAPL_TEST_PATIENCE_MS` (default 20000). The
 * test runner's own timeout must be longer.
 */
export const PATIENCE_MS = Number(process.env['DAPL_TEST_PATIENCE_MS'] ?? 20000);
