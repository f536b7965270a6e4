/** The interface that a packet port's author implements to run the suite of ports. */
import type { PacketPort } from 'dapl/spi';

export const FAMILIES = ['ipv4', 'ipv6'] as const;
export type Family = (typeof FAMILIES)[number];

/** Optional capabilities of a port or its fixture. */
export const PORT_CAPABILITIES = [
  /** Pairs of addresses of this family. */
  'ipv4',
  'ipv6',
  /** `PortPair.silentAddress`: the port reports that nothing listens there. */
  'unreachable-ipv4',
  'unreachable-ipv6',
  /** `joinGroup`, and the ports reach each other by multicast. */
  'groups-ipv4',
  'groups-ipv6',
  /** The second port of a pair has two addresses. */
  'addresses-ipv4',
  'addresses-ipv6',
  /** `PortPair.module`: pairs can be opened in processes of their own. */
  'process',
] as const;

export type PortCapability = (typeof PORT_CAPABILITIES)[number];

/** Capabilities that a behaviour may need, in either address family. */
export type PortNeed = 'unreachable' | 'groups' | 'addresses' | 'process';

/** Two ports that can reach each other; both may be the same port. */
export interface PortPair {
  readonly a: PacketPort;
  readonly b: PacketPort;
  /** The longest packet on the paths between them, in bytes, if `addPath` needs it. */
  readonly pathBytes?: number;
  /** An address of the family where nothing listens, if the ports report that. */
  readonly silentAddress?: string;
  /** URL of a module without side effects that exports the fixture as `fixture`. */
  readonly module?: string;
  /** Closes anything beside the two ports. */
  close?(): Promise<void>;
}

export interface PacketPortFixture {
  /** Behaviours that need other capabilities are reported as not applicable. */
  readonly capabilities: readonly PortCapability[];
  /** Opens a new pair for each behaviour. */
  openPair(family: Family): Promise<PortPair>;
}
