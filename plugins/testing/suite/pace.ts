/**
 * How long the suite waits for what is under way and tells of no end. Where a fixture does not say,
 * that is twice what the slowest of the last connections took: a connection is three messages and
 * the work of both sides, so the wait is long on a slow or busy machine and short on a quick one.
 */
import type { CompliancePair } from './fixture.js';

/** Connections that count. */
const REMEMBERED = 16;
/** Before there is one to go by. */
const FIRST_MS = 20;
/** Longer than repetitions and timers that behaviours ask for. */
const LEAST_MS = 5;
const MOST_MS = 2000;

export class Pace {
  private readonly tookMs: number[] = [];

  /** A connection has taken so long. */
  note(ms: number): void {
    this.tookMs.push(ms);
    if (this.tookMs.length > REMEMBERED) this.tookMs.shift();
  }

  /** How long to wait now. */
  get settleMs(): number {
    if (this.tookMs.length === 0) return FIRST_MS;
    return Math.min(MOST_MS, Math.max(LEAST_MS, 2 * Math.max(...this.tookMs)));
  }
}

const pace = new Pace();

/** Runs what connects, and learns from the time that it takes. */
export async function timed<T>(connecting: () => Promise<T>): Promise<T> {
  const before = performance.now();
  const result = await connecting();
  pace.note(performance.now() - before);
  return result;
}

/** Lets what is under way happen. */
export async function settle(pair: CompliancePair): Promise<void> {
  if (pair.settle !== undefined) await pair.settle();
  else await sleep(pace.settleMs);
}

/** So much time passes, in real time or in the pair's own. */
export async function pass(pair: CompliancePair, ms: number): Promise<void> {
  const end = performance.now() + ms;
  do await settle(pair);
  while (pair.settle === undefined && performance.now() < end);
}

function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
