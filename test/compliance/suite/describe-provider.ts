/** Registers the behaviours with the mocha-style `describe` and `it` of the caller. */
import type { BehaviourGroup } from './behaviour.js';
import type { Capability, CompliancePair, ProviderFixture } from './fixture.js';

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
  const capabilities = new Set(fixture.capabilities);
  const notApplicable: string[] = [];
  runner.describe(name, () => {
    for (const { name: title, behaviours } of groups) {
      const [applicable, others] = split(behaviours, capabilities);
      notApplicable.push(...others.map((behaviour) => `${title}: ${behaviour.name}`));
      if (applicable.length === 0) continue;
      runner.describe(title, () => {
        for (const behaviour of applicable) {
          runner.it(behaviour.name, () => withPair(fixture, (pair) => behaviour.run(pair)));
        }
      });
    }
    const report = (): void => printNotApplicable(name, notApplicable);
    (runner.after ?? runner.afterAll)?.(report);
  });
}

function split<B extends { readonly needs: readonly Capability[] }>(
  behaviours: readonly B[],
  capabilities: ReadonlySet<Capability>,
): [B[], B[]] {
  const applies = ({ needs }: B): boolean => needs.every((need) => capabilities.has(need));
  return [behaviours.filter(applies), behaviours.filter((behaviour) => !applies(behaviour))];
}

/** Closes the pair also after a failure, whose error is the one that counts. */
async function withPair(
  fixture: ProviderFixture,
  run: (pair: CompliancePair) => Promise<void>,
): Promise<void> {
  const pair = await fixture.openPair();
  try {
    await run(pair);
  } catch (error) {
    await pair.close().catch(() => undefined);
    throw error;
  }
  await pair.close();
}

function printNotApplicable(name: string, lines: readonly string[]): void {
  if (lines.length === 0) return;
  console.log(`\n  ${name}: ${lines.length} not applicable`);
  for (const line of lines) console.log(`    - ${line}`);
}
