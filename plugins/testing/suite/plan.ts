/** Plans the behaviours of a suite for a fixture, for mocha and for the suites' own runner. */
import type { Behaviour, BehaviourGroup } from './behaviour.js';
import type { Deviation } from './fixture.js';

/** The interface that the author of a provider, device or port implements. */
export interface Fixture<Pair extends { close(): Promise<void> }, Need extends string> {
  readonly capabilities: readonly Need[];
  readonly deviations?: Readonly<Record<string, Deviation>>;
  openPair(): Promise<Pair>;
}

/** Describes the pairs of a suite. */
export interface PairKind<Pair, Need extends string> {
  readonly capabilities: readonly Need[];
  /** The member that a pair must have if the fixture claims the capability. */
  readonly parts: Readonly<Partial<Record<Need, keyof Pair>>>;
  /** Checks what a closed pair has left behind. */
  closed?(pair: Pair): Promise<void>;
}

/** One behaviour of a plan. */
export interface PlannedBehaviour {
  readonly group: string;
  readonly name: string;
  /** Capabilities that the fixture lacks; if any, the behaviour is not applicable. */
  readonly lacks: readonly string[];
  readonly deviation: Deviation | undefined;
  /** Opens a pair, runs the behaviour, closes the pair, and checks what is left. */
  run(): Promise<void>;
}

/** @throws Error if the fixture names an unknown capability or deviation */
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

/** @throws Error that names a missing member of the pair */
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

/** Closes the pair even after a failure, and then throws the error of the failure. */
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

// Known deviations are run all the same, to notice when they no longer fail.

/** The key by which a deviation names its behaviour. */
export function keyOf(group: string, { name }: { readonly name: string }): string {
  return `${group}: ${name}`;
}

/** @throws Error if a key names no behaviour */
export function checkDeviations(
  deviations: Readonly<Record<string, Deviation>>,
  groups: readonly {
    readonly name: string;
    readonly behaviours: readonly { readonly name: string }[];
  }[],
): void {
  const keys = new Set(
    groups.flatMap(({ name, behaviours }) => behaviours.map((each) => keyOf(name, each))),
  );
  for (const key of Object.keys(deviations)) {
    if (!keys.has(key)) throw new Error(`deviation ${JSON.stringify(key)}: no such behaviour`);
  }
}

/** Passes if the behaviour fails as declared. */
export async function deviates(run: () => Promise<void>, deviation: Deviation): Promise<void> {
  const { failsWith, why, mayHold = false } = deviation;
  try {
    await run();
  } catch (error) {
    if (failsWith.test(error instanceof Error ? error.message : String(error))) return;
    throw error;
  }
  if (mayHold) return;
  throw new Error(`it behaves as DAT says: the deviation (${why}) has gone`);
}
