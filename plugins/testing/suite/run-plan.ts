/** Runs behaviours one after the other, without a test runner. */
import { PATIENCE_MS } from './pace.js';
import type { PlannedBehaviour } from './plan.js';

/** The result of a behaviour. */
export interface BehaviourResult {
  readonly group: string;
  readonly name: string;
  /** `deviates`: fails as the fixture's `deviations` declare. */
  readonly outcome: 'passed' | 'failed' | 'deviates' | 'not-applicable';
  /** The message of a failure, or the reason of a deviation. */
  readonly message?: string;
  /** Missing capabilities, if the behaviour is not applicable. */
  readonly lacks: readonly string[];
  readonly durationMs: number;
}

export interface RunOptions {
  /** Selects behaviours by `Group: behaviour`; by default all. */
  readonly filter?: (title: string) => boolean;
  /** Called with each result as soon as it is known. */
  readonly onResult?: (result: BehaviourResult) => void;
  /** Time limit of a behaviour, in ms; default: three times the patience. */
  readonly timeoutMs?: number;
}

/** Runs the behaviours that the filter selects; returns their results in order. */
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
 * Turns an uncaught exception, as from a handler, into a failure of the behaviour.
 * @throws Error if the work does not end in time; it is not cancelled
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
