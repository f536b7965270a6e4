/** Behaviours as data: a name, what it needs, and a function of an open pair. */
import type { Capability } from './capabilities.js';
import type { CompliancePair } from './fixture.js';

/** One behaviour; the pair is fresh, and closed afterwards. */
export interface Behaviour {
  /** As a reader would search it. */
  readonly name: string;
  readonly needs: readonly Capability[];
  run(pair: CompliancePair): Promise<void>;
}

export interface BehaviourGroup {
  readonly name: string;
  readonly behaviours: readonly Behaviour[];
}

/** How a group states a behaviour. */
export type Claim = (
  name: string,
  run: (pair: CompliancePair) => Promise<void>,
  needs?: readonly Capability[],
) => void;

/** Collects the claims of one group. */
export function group(name: string, state: (claim: Claim) => void): BehaviourGroup {
  const behaviours: Behaviour[] = [];
  state((claimed, run, needs = []) => behaviours.push({ name: claimed, needs, run }));
  return { name, behaviours };
}
