/** What of the suite a fixture can run, and how: for mocha and for the suite's own runner. */
import type { Behaviour, BehaviourGroup } from './behaviour.js';
import { type Capability, CAPABILITIES } from './capabilities.js';
import { checkDeviations, deviates, keyOf } from './deviations.js';
import type { CompliancePair, Deviation, ProviderFixture } from './fixture.js';
import { assertGivenBack } from './usage.js';

/** One behaviour of a plan. */
export interface PlannedBehaviour {
  readonly group: string;
  readonly name: string;
  /** What it needs and the fixture has not: then it is not applicable. */
  readonly lacks: readonly Capability[];
  readonly deviation: Deviation | undefined;
  /** Opens a pair, runs the behaviour, closes the pair, and looks at what is left. */
  run(): Promise<void>;
}

/** @throws Error that names a capability or a deviation which there is not */
export function planOf(
  fixture: ProviderFixture,
  groups: readonly BehaviourGroup[],
): PlannedBehaviour[] {
  const { deviations = {} } = fixture;
  checkCapabilities(fixture.capabilities);
  checkDeviations(deviations, groups);
  const present = new Set(fixture.capabilities);
  return groups.flatMap(({ name: group, behaviours }) =>
    behaviours.map((behaviour) => {
      const deviation = deviations[keyOf(group, behaviour)];
      const run = (): Promise<void> => withPair(fixture, behaviour);
      return {
        group,
        name: behaviour.name,
        lacks: behaviour.needs.filter((need) => !present.has(need)),
        deviation,
        run: deviation === undefined ? run : () => deviates(run, deviation),
      };
    }),
  );
}

/** One line for the report: `Transferring: RDMA read: 1 byte (needs rdma-read)`. */
export function lackLine({ group, name, lacks }: PlannedBehaviour): string {
  return `${group}: ${name} (needs ${lacks.join(', ')})`;
}

function checkCapabilities(capabilities: readonly Capability[]): void {
  const known = new Set<string>(CAPABILITIES);
  for (const name of capabilities) {
    if (known.has(name)) continue;
    throw new Error(`capability ${JSON.stringify(name)}: it is one of ${CAPABILITIES.join(', ')}`);
  }
}

/** What a fixture that claims a capability must have on its pairs. */
const PARTS: Partial<Record<Capability, keyof CompliancePair>> = {
  unreachable: 'unreachableAddress',
  cut: 'cut',
  'scripted-faults': 'addFault',
  'second-adapter': 'openPassiveAgain',
  usage: 'usage',
};

/** @throws Error naming the part of the pair that is missing */
function checkPair(pair: CompliancePair, capabilities: readonly Capability[]): void {
  for (const capability of capabilities) {
    const part = PARTS[capability];
    if (part === undefined || pair[part] !== undefined) continue;
    throw new Error(`the fixture claims ${JSON.stringify(capability)}: its pairs have no ${part}`);
  }
}

/** Closes the pair also after a failure, whose error is the one that counts. */
async function withPair(fixture: ProviderFixture, behaviour: Behaviour): Promise<void> {
  const pair = await fixture.openPair();
  try {
    checkPair(pair, fixture.capabilities);
    await behaviour.run(pair);
  } catch (error) {
    await pair.close().catch(() => undefined);
    throw error;
  }
  await pair.close();
  await assertGivenBack(pair);
}
