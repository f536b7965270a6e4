/** Two open adapters, in the form that the suite takes. */
import type { Ia } from 'dapl';
import type { CompliancePair } from 'dapl/testing';

export function pairOf(
  active: Ia,
  passive: Ia,
  openPassiveAgain: NonNullable<CompliancePair['openPassiveAgain']>,
): CompliancePair {
  return {
    active,
    passive,
    passiveAddress: passive.address,
    openPassiveAgain,
    close: async () => {
      await Promise.all([active.close(), passive.close()]);
    },
  };
}
