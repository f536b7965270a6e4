/** Optional capabilities of a provider or its fixture. */
import type { CompliancePair } from './fixture.js';
import type { PairKind } from './plan.js';
import { assertGivenBack } from './usage.js';

/** The names of those capabilities. */
export const CAPABILITIES = [
  /** `CompliancePair.unreachableAddress`: an unused address, which the network reports as such. */
  'unreachable',
  /** `CompliancePair.cut`: the fixture can cut the connection between the peers. */
  'cut',
  /** `CompliancePair.addFault`: a behaviour can drop, delay, repeat or corrupt packets. */
  'scripted-faults',
  /** `CompliancePair.openPassiveAgain`: another adapter on an open device. */
  'second-adapter',
  /** An endpoint can reach a service point of its own adapter. */
  'loopback',
  /** RDMA reads: the adapter attribute `maxRdmaReadPerEpOut` is not 0. */
  'rdma-read',
  /** The device has unreliable datagrams, and the CM module resolves their services. */
  'ud',
  /** Datagram endpoints can join groups, which reach both adapters. */
  'multicast',
  /**
   * A request is still in flight when the call that posted it returns, and until the next turn of
   * the event loop. Simulated and software devices guarantee that; hardware may be faster.
   */
  'latency',
  /**
   * A refused peer learns whether the consumer or a missing service refused it. With librdmacm,
   * every refusal of a request that was handed over looks like the consumer's.
   */
  'refusal-reasons',
  /** Connecting and listening by service ids that are not ports: librdmacm knows ports only. */
  'service-id',
  /** `ia.createSrq`: the provider attribute `srqSupported`. */
  'shared-receive-queue',
  /** Fetch-and-add, compare-and-swap: the provider attribute DAT_IB_FETCH_AND_ADD. */
  'atomic',
  /** `ep.postSendWithInvalidate`. */
  'send-with-invalidate',
  /** `ia.createRmr` and `ia.createRmrForEp`. */
  'memory-window',
  /** `ia.mapFile`. */
  'file-mapping',
  /** `ia.allocate` with `shared`: named memory. */
  'named-memory',
  /** `ia.openXrcDomain`. */
  'xrc',
  /** XRC initiators and targets connect through the CM module; else they attach by numbers. */
  'xrc-connections',
  /** `CompliancePair.usage`: the number of objects of each kind that the provider holds. */
  'usage',
] as const;

export type Capability = (typeof CAPABILITIES)[number];

/** The pairs of adapters of the provider suite. */
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
