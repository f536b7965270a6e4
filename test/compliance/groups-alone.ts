/** Some groups of the provider suite, for what is tested in more than one way. */
import type { ProviderFixture } from 'dapl/testing';
import type { BehaviourGroup } from '../../plugins/testing/suite/behaviour.js';
import { planOf } from '../../plugins/testing/suite/plan.js';
import { PROVIDER_PAIRS } from '../../plugins/testing/suite/capabilities.js';
import { registerPlan } from '../../plugins/testing/suite/register.js';
import {
  type BehaviourResult,
  runPlan,
  type RunOptions,
} from '../../plugins/testing/suite/run-plan.js';

export function describeGroups(
  name: string,
  fixture: ProviderFixture,
  groups: readonly BehaviourGroup[],
): void {
  registerPlan(name, planOf(fixture, groups, PROVIDER_PAIRS), fixture.deviations);
}

export async function runGroups(
  fixture: ProviderFixture,
  groups: readonly BehaviourGroup[],
  options: RunOptions = {},
): Promise<BehaviourResult[]> {
  return runPlan(planOf(fixture, groups, PROVIDER_PAIRS), options);
}
