/** Behaviours as data: a name, the capabilities it needs, and a function of an open pair. */
import type { Capability } from './capabilities.js';
import type { CompliancePair } from './fixture.js';

/** One behaviour. It gets a new pair, which is closed afterwards. */
export interface Behaviour<Pair = CompliancePair, Need extends string = Capability> {
  /** In words that a reader would search for. */
  readonly name: string;
  readonly needs: readonly Need[];
  run(pair: Pair): Promise<void>;
}

export interface BehaviourGroup<Pair = CompliancePair, Need extends string = Capability> {
  readonly name: string;
  readonly behaviours: readonly Behaviour<Pair, Need>[];
}

/** Adds a behaviour to a group. */
export type Claim<Pair = CompliancePair, Need extends string = Capability> = (
  name: string,
  run: (pair: Pair) => Promise<void> | void,
  needs?: readonly Need[],
) => void;

/** Collects the claims of one group. */
export function group<Pair = CompliancePair, Need extends string = Capability>(
  name: string,
  state: (claim: Claim<Pair, Need>) => void,
): BehaviourGroup<Pair, Need> {
  const behaviours: Behaviour<Pair, Need>[] = [];
  state((claimed, run, needs = []) => {
    behaviours.push({ name: claimed, needs, run: async (pair) => run(pair) });
  });
  return { name, behaviours };
}
