/** What of a suite a fixture can run, and how: for mocha and for the suites' own runner. */
import type { Behaviour, BehaviourGroup } from './behaviour.js';
import { checkDeviations, deviates, keyOf } from './deviations.js';
import type { Deviation } from './fixture.js';

/** How a suite gets at what it is for. */
export interface Fixture<Pair extends { close(): Promise<void> }, Need extends string> {
  readonly capabilities: readonly Need[];
  readonly deviations?: Readonly<Record<string, Deviation>>;
  openPair(): Promise<Pair>;
}

/** What the pairs of a suite are. */
export interface PairKind<Pair, Need extends string> {
  readonly capabilities: readonly Need[];
  /** What a fixture that claims a capability must have on its pairs. */
  readonly parts: Readonly<Partial<Record<Need, keyof Pair>>>;
  /** Looks at what a pair that has closed has left. */
  closed?(pair: Pair): Promise<void>;
}

/** One behaviour of a plan. */
export interface PlannedBehaviour {
  readonly group: string;
  readonly name: string;
  /** What it needs and the fixture has not: then it is not applicable. */
  readonly lacks: readonly string[];
  readonly deviation: Deviation | undefined;
  /** Opens a pair, runs the behaviour, closes the pair, and looks at what is left. */
  run(): Promise<void>;
}

/** @throws Error that names a capability or a deviation which there is not */
export function planOf<Pair extends { close(): Promise<void> }, Need extends string>(
  fixture: Fixture<Pair, Need>,
  groups: readonly BehaviourGroup<Pair, Need>[],
  kind: PairKind<Pair, Need>,
): PlannedBehaviour[] {
  const { deviations = {} } = fixture;
  checkCapabilities(fixture.capabilities, kind.capabilities);
  checkDeviations(deviations, groups);
  const present = new Set(fixture.capabilities);
  return groups.flatMap(({ name: group, behaviours }) =>
    behaviours.map((behaviour) => {
      const deviation = deviations[keyOf(group, behaviour)];
      const run = (): Promise<void> => withPair(fixture, behaviour, kind);
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
export function lackLine({
  group,
  name,
  lacks,
}: Pick<PlannedBehaviour, 'group' | 'name' | 'lacks'>): string {
  return `${group}: ${name} (needs ${lacks.join(', ')})`;
}

function checkCapabilities(given: readonly string[], known: readonly string[]): void {
  for (const name of given) {
    if (known.includes(name)) continue;
    throw new Error(`capability ${JSON.stringify(name)}: it is one of ${known.join(', ')}`);
  }
}

/** @throws Error naming the part of the pair that is missing */
function checkPair<Pair, Need extends string>(
  pair: Pair,
  capabilities: readonly Need[],
  { parts }: PairKind<Pair, Need>,
): void {
  for (const capability of capabilities) {
    const part = parts[capability];
    if (part === undefined || pair[part] !== undefined) continue;
    const missing = `its pairs have no ${String(part)}`;
    throw new Error(`the fixture claims ${JSON.stringify(capability)}: ${missing}`);
  }
}

/** Closes the pair also after a failure, whose error is the one that counts. */
async function withPair<Pair extends { close(): Promise<void> }, Need extends string>(
  fixture: Fixture<Pair, Need>,
  behaviour: Behaviour<Pair, Need>,
  kind: PairKind<Pair, Need>,
): Promise<void> {
  const pair = await fixture.openPair();
  try {
    checkPair(pair, fixture.capabilities, kind);
    await behaviour.run(pair);
  } catch (error) {
    await pair.close().catch(() => undefined);
    throw error;
  }
  await pair.close();
  await kind.closed?.(pair);
}
