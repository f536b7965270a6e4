/** The suite's fixture over the mock: two nodes of a fabric, with all that behaviours ask for. */
import { openIa } from 'dapl';
import {
  Fabric,
  type LinkOptions,
  mock,
  type MockOptions,
  type PacketAction,
} from 'dapl/providers/mock';
import type { Capability, CompliancePair, PacketFault, ProviderFixture } from 'dapl/testing';

const ACTIVE = '192.0.2.1';
const PASSIVE = '192.0.2.2';

export const MOCK_CAPABILITIES: readonly Capability[] = [
  'unreachable',
  'cut',
  'scripted-faults',
  'latency',
  'refusal-reasons',
  'service-id',
  'second-adapter',
  'loopback',
  'rdma-read',
  'shared-receive-queue',
  'atomic',
  'send-with-invalidate',
  'xrc',
  'xrc-connections',
  'memory-window',
  'ud',
  'multicast',
  'usage',
];

export interface MockFixtureOptions {
  readonly without?: readonly Capability[];
  readonly mtuBytes?: number;
  readonly link?: Partial<LinkOptions>;
  readonly parameters?: MockOptions['parameters'];
  /** What stands over the provider of each adapter. */
  readonly wrap?: (provider: ReturnType<typeof mock>) => ReturnType<typeof mock>;
  /** In place of what the nodes hold. */
  readonly usage?: (fabric: Fabric) => Readonly<Record<string, number>>;
}

export function mockFixture(options: MockFixtureOptions = {}): ProviderFixture {
  const { without = [], wrap = (provider) => provider, usage = held, parameters } = options;
  return {
    capabilities: MOCK_CAPABILITIES.filter((capability) => !without.includes(capability)),
    async openPair(): Promise<CompliancePair> {
      const { link = {}, mtuBytes = 1024 } = options;
      const fabric = new Fabric({ seed: 1, autoRun: true, link, mtuBytes });
      // A device that is open has the modules that it was opened with: one object for each.
      const providers = new Map<string, ReturnType<typeof mock>>();
      const provider = (address: string): ReturnType<typeof mock> => {
        const made = mock({ fabric, address, ...(parameters !== undefined && { parameters }) });
        const known = providers.get(address) ?? wrap(made);
        providers.set(address, known);
        return known;
      };
      const active = await openIa(provider(ACTIVE));
      const passive = await openIa(provider(PASSIVE));
      return {
        active,
        passive,
        passiveAddress: PASSIVE,
        unreachableAddress: '192.0.2.99',
        openPassiveAgain: (more) => openIa(provider(PASSIVE), more),
        cut: () => fabric.partition([ACTIVE], [PASSIVE]),
        addFault: (fault) => addFault(fabric, fault),
        settle: () => fabric.run({ forUs: 100_000 }),
        usage: () => usage(fabric),
        close: async () => {
          await Promise.all([active.close(), passive.close()]);
        },
      };
    },
  };
}

function addFault(
  fabric: Fabric,
  { from, match, action, nth = 1, count = 1 }: PacketFault,
): ReturnType<Fabric['faults']['add']> {
  const where = (packet: { readonly bytes: Uint8Array }): boolean => match(packet.bytes);
  const rule = { from: from === 'active' ? ACTIVE : PASSIVE, where, nth, count };
  return fabric.faults.add({ match: rule, action: actionOf(action) });
}

function actionOf(action: PacketFault['action']): PacketAction {
  if (action === 'drop') return { type: 'drop' };
  if (action === 'spoil') return { type: 'corrupt', byteOffset: 12 };
  if ('delayUs' in action) return { type: 'delay', byUs: action.delayUs };
  return { type: 'duplicate', afterUs: action.repeatAfterUs };
}

/** What both nodes hold. */
function held(fabric: Fabric): Record<string, number> {
  const sum = { regions: 0, paths: 0, queuePairs: 0 };
  for (const address of [ACTIVE, PASSIVE]) {
    const node = fabric.node(address);
    if (node === undefined) continue;
    sum.regions += node.port.usage.regions;
    sum.paths += node.port.usage.paths;
    sum.queuePairs += node.device.hca.queuePairs.size;
  }
  return sum;
}
