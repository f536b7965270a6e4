/**
 * The conformance suite (`dapl/testing`): what DAT consumers may expect of every provider, one
 * behaviour a test. A provider's author calls `describeProvider` from a test file of mocha, or of
 * another runner with global `describe` and `it`; tests take some seconds in all.
 */
import { registerBehaviours } from './suite/describe-provider.js';
import type { ProviderFixture } from './suite/fixture.js';
import { behaviourGroups } from './suite/groups.js';

export type {
  ActivePacketFault,
  Capability,
  CompliancePair,
  Deviation,
  PacketFault,
  ProviderFixture,
} from './suite/fixture.js';

/**
 * Registers the whole suite for a provider.
 * @param name of the provider, in the titles
 * @param fixture opens a fresh pair of adapters for each behaviour
 */
export function describeProvider(name: string, fixture: ProviderFixture): void {
  registerBehaviours(`${name} behaves as DAT says`, fixture, behaviourGroups);
}
