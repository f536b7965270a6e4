/** Runs behaviours one after the other, without a test runner. */
import { PATIENCE_MS } from './patience.js';
import type { PlannedBehaviour } from './plan.js';

/** How a behaviour has ended. */
export interface BehaviourResult {
  readonly group: string;
  readonly name: string;
  /** `deviates`: fails as the fixture's `deviations` say. */
  readonly outcome: 'passed' | 'failed' | 'deviates' | 'not-applicable';
  /** Of a failure: its message. Of a deviation: why. */
  readonly message?: string;
  /** What a behaviour that is not applicable needs. */
  readonly lacks: readonly string[];
  readonly durationMs: number;
}

export interface RunOptions {
  /** Takes a behaviour by `Group: behaviour`; default: all. */
  readonly filter?: (title: string) => boolean;
  /** Told of each result as it comes. */
  readonly onResult?: (result: BehaviourResult) => void;
  /** When a behaviour that has not ended has failed, in ms; default: three times the patience. */
  readonly timeoutMs?: number;
}

/** A result for each behaviour of a plan that the filter takes, in their order. */
export async function runPlan(
  plan: readonly PlannedBehaviour[],
  { filter = () => true, onResult, timeoutMs = 3 * PATIENCE_MS }: RunOptions = {},
): Promise<BehaviourResult[]> {
  const results: BehaviourResult[] = [];
  for (const behaviour of plan) {
    if (!filter(`${behaviour.group}: ${behaviour.name}`)) continue;
    const result = await resultOf(behaviour, timeoutMs);
    results.push(result);
    onResult?.(result);
  }
  return results;
}

async function resultOf(behaviour: PlannedBehaviour, timeoutMs: number): Promise<BehaviourResult> {
  const { group, name, lacks, deviation } = behaviour;
  const before = performance.now();
  const end = (outcome: BehaviourResult['outcome'], message?: string): BehaviourResult => {
    const durationMs = performance.now() - before;
    return { group, name, outcome, lacks, durationMs, ...(message !== undefined && { message }) };
  };
  if (lacks.length > 0) return end('not-applicable');
  try {
    await within(() => behaviour.run(), timeoutMs);
    return deviation === undefined ? end('passed') : end('deviates', deviation.why);
  } catch (error) {
    return end('failed', error instanceof Error ? error.message : String(error));
  }
}

/**
 * What is thrown meanwhile and caught by nobody, as from a handler, is the behaviour's failure, and
 * no end of the process.
 * @throws Error when the work has not ended in time; it is left to itself then
 */
async function within(work: () => Promise<void>, timeoutMs: number): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const failure = new Promise<never>((_, reject) => {
    process.setUncaughtExceptionCaptureCallback(reject);
    timer = setTimeout(() => {
      reject(new Error(`it has not ended after ${timeoutMs} ms`));
    }, timeoutMs);
  });
  try {
    await Promise.race([work(), failure]);
  } finally {
    clearTimeout(timer);
    process.setUncaughtExceptionCaptureCallback(null);
  }
}
