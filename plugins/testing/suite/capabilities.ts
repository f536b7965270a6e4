/** What a fixture, or the provider under it, can do beyond opening a pair of adapters. */
export const CAPABILITIES = [
  /** `CompliancePair.unreachableAddress`: an address where nobody is, and the network says so. */
  'unreachable',
  /** `CompliancePair.cut`: the peers lose sight of each other. */
  'cut',
  /** `CompliancePair.addFault`: packets are lost, late, repeated or spoilt as a behaviour says. */
  'scripted-faults',
  /** `CompliancePair.openPassiveAgain`: another adapter on a device that is open. */
  'second-adapter',
  /** An endpoint reaches a service point of its own adapter. */
  'loopback',
  /** RDMA reads: the adapter attribute `maxRdmaReadPerEpOut` is not 0. */
  'rdma-read',
  /** The device has unreliable datagrams, the CM module resolves their services. */
  'ud',
  /** Endpoints for datagrams join groups, and those of both adapters are reached by them. */
  'multicast',
  /**
   * A request is still under way when the call that posted it returns, and until the event loop
   * turns. Simulated and software devices can promise that; one of its own thread may be quicker.
   */
  'latency',
  /**
   * The peer learns whether the consumer refused it or the service was not there for it any more:
   * with librdmacm all refusals of a request that has been handed over are the consumer's.
   */
  'refusal-reasons',
  /** Connecting and listening by service ids of no port: librdmacm knows its ports only. */
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
  /** `ia.allocate` with `shared`: memory by a name. */
  'named-memory',
  /** `ia.openXrcDomain`. */
  'xrc',
  /** XRC initiators and targets connect through the CM module; else they attach by numbers. */
  'xrc-connections',
  /** `CompliancePair.usage`: how many things of each kind the provider holds. */
  'usage',
] as const;

export type Capability = (typeof CAPABILITIES)[number];
