/** Registers the behaviours with the mocha-style `describe` and `it` of the caller. */
import type { Behaviour, BehaviourGroup } from './behaviour.js';
import { deviates, keyOf, checkDeviations } from './deviations.js';
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
  const { deviations = {} } = fixture;
  checkDeviations(deviations, groups);
  const testOf = (group: string, behaviour: Behaviour): (() => Promise<void>) => {
    const run = (): Promise<void> => withPair(fixture, (pair) => behaviour.run(pair));
    const deviation = deviations[keyOf(group, behaviour)];
    return deviation === undefined ? run : () => deviates(run, deviation);
  };
  runner.describe(name, () => {
    for (const { name: title, behaviours } of groups) {
      const [applicable, others] = split(behaviours, capabilities);
      notApplicable.push(...others.map((behaviour) => `${title}: ${behaviour.name}`));
      if (applicable.length === 0) continue;
      runner.describe(title, () => {
        for (const behaviour of applicable) {
          runner.it(behaviour.name, testOf(title, behaviour));
        }
      });
    }
    const report = (): void => {
      print(name, 'not applicable', notApplicable);
      const lines = Object.entries(deviations).map(([key, { why }]) => `${key}: ${why}`);
      print(name, 'fail as expected', lines);
    };
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

function print(name: string, what: string, lines: readonly string[]): void {
  if (lines.length === 0) return;
  console.log(`\n  ${name}: ${lines.length} ${what}`);
  for (const line of lines) console.log(`    - ${line}`);
}
