/** What came of one test of iscsi-test-cu, by what it prints. */

export type Verdict = 'passed' | 'skipped' | 'failed';

export interface Outcome {
  readonly verdict: Verdict;
  /** Why, where it was not plainly passed: lines of the program's own. */
  readonly reasons: readonly string[];
}

/** How a run of the program has ended. */
export interface Run {
  readonly output: string;
  /** Undefined for a program that was killed. */
  readonly exitCode: number | undefined;
  readonly signal: string | undefined;
}

const MOST_REASONS = 6;
/** What a shell says of the end of a program. */
const SHELL_WORDS: ReadonlySet<string> = new Set(['Killed', 'Segmentation fault', 'Aborted']);

/**
 * A test is passed when the program has run it, no assertion failed and it exits with 0. What the
 * program passes because the target lacks a command or a property is skipped: it says so itself.
 */
export function outcomeOf({ output, exitCode, signal }: Run): Outcome {
  const lines = output.split('\n').map((line) => line.trim());
  if (signal !== undefined) return { verdict: 'failed', reasons: [`ended by ${signal}`] };
  const ran = /^tests\s+\d+\s+(\d+)\s+(\d+)\s+(\d+)/.exec(lines.find(isTestsLine) ?? '');
  const [, count = '0', , failures = '1'] = ran ?? [];
  if (count !== '1' || failures !== '0' || exitCode !== 0) {
    const said = lines.filter((line) => /\[FAILED\]|\[FAILURE\]|^\d+\. |failed/i.test(line));
    // What was under way when it crashed, or was killed, is in its last line.
    const last = lines.findLast((line) => line !== '' && !SHELL_WORDS.has(line)) ?? 'nothing';
    const ended = [`exit code ${exitCode}, ${count} tests ran`, `the last line: ${last}`];
    const reasons = said.length > 0 ? said : ended;
    return { verdict: 'failed', reasons: reasons.slice(0, MOST_REASONS) };
  }
  const skips = lines.filter((line) => /\[SKIPP(ED|ING)\]|Skipping test|removable/.test(line));
  if (skips.length > 0) return { verdict: 'skipped', reasons: skips.slice(0, 1) };
  return { verdict: 'passed', reasons: [] };
}

function isTestsLine(line: string): boolean {
  return /^tests\s/.test(line);
}

/** Names of single tests, as `-l` lists them: family, suite, test. */
export function testNames(listing: string): string[] {
  return listing
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => /^ALL\.[^.]+\.[^.]+$/.test(line));
}
