// A runner as small as its job: one line a case, a bound on each, a count and times at the end.

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
  /** Milliseconds until the case has failed. Default 90000. */
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

/**
 * Runs the cases one after the other. `afterFailure` puts right what a failed case has left behind,
 * so that the next one is judged by what it does itself.
 */
export async function runCases(
  cases: readonly Case[],
  print: (line: string) => void,
  afterFailure: () => Promise<void>,
): Promise<Outcome[]> {
  const outcomes: Outcome[] = [];
  for (const { name, row, run, full = false, timeoutMs } of cases) {
    const start = performance.now();
    const error = await failureOf(run, timeoutMs ?? CASE_TIMEOUT_MS);
    const seconds = (performance.now() - start) / 1000;
    outcomes.push({ name, row, full, passed: error === undefined, seconds });
    print(`${error === undefined ? 'ok   ' : 'FAIL '} ${name} (${seconds.toFixed(1)} s)`);
    if (error === undefined) continue;
    print(error.replace(/^/gm, '      '));
    await afterFailure();
  }
  return outcomes;
}

async function failureOf(run: () => Promise<void>, timeoutMs: number): Promise<string | undefined> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => {
      reject(new Error(`not done in ${timeoutMs} ms`));
    }, timeoutMs);
  });
  try {
    await Promise.race([run(), late]);
    return undefined;
  } catch (error) {
    return error instanceof Error ? (error.stack ?? error.message) : String(error);
  } finally {
    clearTimeout(timer);
  }
}
