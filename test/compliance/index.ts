/**
 * The conformance suite (`dapl/testing`): what DAT consumers may expect of every provider, one
 * behaviour a test. A provider's author calls `describeProvider` from a test file of mocha, or of
 * another runner with global `describe` and `it`; tests take some seconds in all.
 */
import { registerBehaviours } from './suite/describe-provider.js';
import type { ProviderFixture } from './suite/fixture.js';
import { behaviourGroups } from './suite/groups.js';
import { type BehaviourResult, runBehaviours, type RunOptions } from './suite/run-behaviours.js';

export { CAPABILITIES, type Capability } from './suite/capabilities.js';
export type {
  ActivePacketFault,
  CompliancePair,
  Deviation,
  PacketFault,
  ProviderFixture,
} from './suite/fixture.js';
export type { BehaviourResult, RunOptions } from './suite/run-behaviours.js';

/**
 * Registers the whole suite for a provider.
 * @param name of the provider, in the titles
 * @param fixture opens a fresh pair of adapters for each behaviour
 * @throws Error for a fixture that names a capability or a deviation which there is not
 */
export function describeProvider(name: string, fixture: ProviderFixture): void {
  registerBehaviours(`${name} behaves as DAT says`, fixture, behaviourGroups);
}

/**
 * Runs the suite, or what a filter takes of it, without a test runner.
 * @returns a result for each behaviour, in the order of the suite
 * @throws Error as `describeProvider`; what a behaviour throws is in its result
 */
export function runProvider(
  fixture: ProviderFixture,
  options: RunOptions = {},
): Promise<BehaviourResult[]> {
  return runBehaviours(fixture, behaviourGroups, options);
}
