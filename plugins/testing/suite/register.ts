/** Registers a plan with the mocha-style `describe` and `it` of the caller. */
import type { Deviation } from './fixture.js';
import { lackLine, type PlannedBehaviour } from './plan.js';

/** The functions of mocha (or jasmine, jest, vitest) that the suites use. */
interface TestRunner {
  describe(name: string, body: () => void): void;
  it(name: string, body: () => Promise<void>): void;
  after?(body: () => void): void;
  afterAll?(body: () => void): void;
}

/** Counts and prints behaviours that do not apply, with the capabilities they need. */
export function registerPlan(
  name: string,
  plan: readonly PlannedBehaviour[],
  deviations: Readonly<Record<string, Deviation>> = {},
): void {
  const runner = globalThis as unknown as TestRunner;
  const titles = [...new Set(plan.map(({ group }) => group))];
  runner.describe(name, () => {
    for (const title of titles) {
      const applicable = plan.filter(({ group, lacks }) => group === title && lacks.length === 0);
      if (applicable.length === 0) continue;
      runner.describe(title, () => {
        for (const behaviour of applicable) runner.it(behaviour.name, () => behaviour.run());
      });
    }
    const report = (): void => {
      const lacking = plan.filter(({ lacks }) => lacks.length > 0);
      print(name, 'not applicable', lacking.map(lackLine));
      const lines = Object.entries(deviations).map(([key, { why }]) => `${key}: ${why}`);
      print(name, 'fail as expected', lines);
    };
    (runner.after ?? runner.afterAll)?.(report);
  });
}

function print(name: string, what: string, lines: readonly string[]): void {
  if (lines.length === 0) return;
  console.log(`\n  ${name}: ${lines.length} ${what}`);
  for (const line of lines) console.log(`    - ${line}`);
}
