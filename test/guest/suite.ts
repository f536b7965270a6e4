// A runner as small as its job: one line a case, a bound on each, a count at the end.

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
  readonly run: () => Promise<void>;
}

export interface Outcome {
  readonly row: InteropRow | undefined;
  readonly passed: boolean;
}

const CASE_TIMEOUT_MS = 90_000;

export async function runCases(
  cases: readonly Case[],
  print: (line: string) => void,
): Promise<Outcome[]> {
  const outcomes: Outcome[] = [];
  for (const { name, row, run } of cases) {
    const start = performance.now();
    const error = await failureOf(run);
    const seconds = ((performance.now() - start) / 1000).toFixed(1);
    outcomes.push({ row, passed: error === undefined });
    print(error === undefined ? `ok    ${name} (${seconds} s)` : `FAIL  ${name} (${seconds} s)`);
    if (error !== undefined) print(error.replace(/^/gm, '      '));
  }
  const failed = outcomes.filter(({ passed }) => !passed).length;
  print(`${outcomes.length - failed} passed, ${failed} failed`);
  return outcomes;
}

async function failureOf(run: () => Promise<void>): Promise<string | undefined> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => {
      reject(new Error(`not done in ${CASE_TIMEOUT_MS} ms`));
    }, CASE_TIMEOUT_MS);
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
