/** The pairs of adapters of the provider suite. */
import { type Capability, CAPABILITIES } from './capabilities.js';
import type { CompliancePair } from './fixture.js';
import type { PairKind } from './plan.js';
import { assertGivenBack } from './usage.js';

export const PROVIDER_PAIRS: PairKind<CompliancePair, Capability> = {
  capabilities: CAPABILITIES,
  parts: {
    unreachable: 'unreachableAddress',
    cut: 'cut',
    'scripted-faults': 'addFault',
    'second-adapter': 'openPassiveAgain',
    usage: 'usage',
  },
  closed: assertGivenBack,
};
