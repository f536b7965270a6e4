/** Registers the behaviours with the mocha-style `describe` and `it` of the caller. */
import type { BehaviourGroup } from './behaviour.js';
import type { ProviderFixture } from './fixture.js';
import { lackLine, planOf } from './plan.js';

/** The part of mocha (jasmine, jest, vitest) that the suite uses. */
interface TestRunner {
  describe(name: string, body: () => void): void;
  it(name: string, body: () => Promise<void>): void;
  after?(body: () => void): void;
  afterAll?(body: () => void): void;
}

/** Behaviours of `groups` for a provider; those that do not apply are counted and printed. */
export function registerBehaviours(
  name: string,
  fixture: ProviderFixture,
  groups: readonly BehaviourGroup[],
): void {
  const runner = globalThis as unknown as TestRunner;
  const plan = planOf(fixture, groups);
  runner.describe(name, () => {
    for (const { name: title } of groups) {
      const applicable = plan.filter(({ group, lacks }) => group === title && lacks.length === 0);
      if (applicable.length === 0) continue;
      runner.describe(title, () => {
        for (const behaviour of applicable) runner.it(behaviour.name, () => behaviour.run());
      });
    }
    const report = (): void => {
      const lacking = plan.filter(({ lacks }) => lacks.length > 0);
      print(name, 'not applicable', lacking.map(lackLine));
      const { deviations = {} } = fixture;
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
