/** A pair of providers of each kind: what stands over any provider is tried over all of these. */
import { type Ia, openIa } from 'dapl';
import { Fabric, mock } from 'dapl/providers/mock';
import { softroce } from 'dapl/providers/softroce';
import { verbs } from 'dapl/providers/verbs';
import type { ConfiguredProvider } from 'dapl/spi';
import type { CompliancePair } from 'dapl/testing';
import { CM_LIBRARY, loadCmFake } from '../fake-verbs/cm-host.js';
import { FAKE_LIBIBVERBS, fakeVerbs, Mode } from '../fake-verbs/control.js';
import { loopback } from './loopback.js';
import { stranger } from './stranger/provider.js';

export interface ProviderPair {
  readonly active: ConfiguredProvider;
  readonly passive: ConfiguredProvider;
  readonly passiveAddress: string;
}

export const PROVIDER_PAIRS: Readonly<Record<string, () => ProviderPair>> = {
  mock: () => {
    const fabric = new Fabric({ seed: 1, autoRun: true });
    const active = mock({ fabric, address: '192.0.2.1' });
    const passive = mock({ fabric, address: '192.0.2.2' });
    return { active, passive, passiveAddress: '192.0.2.2' };
  },
  softroce: () => ({
    active: softroce({ addresses: [loopback(2, 91)] }),
    passive: softroce({ addresses: [loopback(2, 92)] }),
    passiveAddress: loopback(2, 92),
  }),
  'softroce, on node:dgram': () => ({
    active: softroce({ addresses: [loopback(2, 93)], port: 'dgram' }),
    passive: softroce({ addresses: [loopback(2, 94)], port: 'dgram' }),
    passiveAddress: loopback(2, 94),
  }),
  'verbs without hardware': () => {
    const [fake, cm] = [fakeVerbs(), loadCmFake()];
    fake.restore();
    fake.setMode(Mode.THREAD);
    cm.addAddress('198.51.100.1', 'fake0');
    cm.addAddress('198.51.100.2', 'fake1');
    const libraries = { verbs: FAKE_LIBIBVERBS, rdmacm: CM_LIBRARY };
    const active = verbs({ device: 'fake0', libraries });
    const passive = verbs({ device: 'fake1', libraries });
    return { active, passive, passiveAddress: '198.51.100.2' };
  },
  "a stranger's": () => ({
    active: stranger({ address: '203.0.113.1' }),
    passive: stranger({ address: '203.0.113.2' }),
    passiveAddress: '203.0.113.2',
  }),
};

/** Opens a pair for what the behaviours of the suite do, and closes it whatever becomes of that. */
export async function withAdapters(
  { active, passive, passiveAddress }: ProviderPair,
  body: (pair: CompliancePair) => Promise<void>,
): Promise<void> {
  const open: Ia[] = [];
  const close = async (): Promise<void> => {
    await Promise.all(open.splice(0).map((ia) => ia.close()));
  };
  try {
    for (const provider of [active, passive]) open.push(await openIa(provider));
    await body({ active: open[0]!, passive: open[1]!, passiveAddress, close });
  } finally {
    await close();
  }
}
