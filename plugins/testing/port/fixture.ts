/** What the author of a packet port supplies to run the suite of ports. */
import type { PacketPort } from 'dapl/spi';

export const FAMILIES = ['ipv4', 'ipv6'] as const;
export type Family = (typeof FAMILIES)[number];

/** What a port, or the fixture under it, can do. */
export const PORT_CAPABILITIES = [
  /** Pairs of addresses of this family. */
  'ipv4',
  'ipv6',
  /** `PortPair.silentAddress`: the port hears that nothing listens there. */
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

/** What a behaviour needs of a pair, of whichever family. */
export type PortNeed = 'unreachable' | 'groups' | 'addresses' | 'process';

/** Two ports that can reach each other; they may be one and the same. */
export interface PortPair {
  readonly a: PacketPort;
  readonly b: PacketPort;
  /** Longest packets of the paths between them, in bytes, where `addPath` has to be told. */
  readonly pathBytes?: number;
  /** An address of the family where nothing listens, if the ports hear of that. */
  readonly silentAddress?: string;
  /** URL of a module that exports the fixture as `fixture`, and runs nothing by itself. */
  readonly module?: string;
  /** What there is to end beside the two ports. */
  close?(): Promise<void>;
}

export interface PacketPortFixture {
  /** Behaviours that need another one are reported as not applicable. */
  readonly capabilities: readonly PortCapability[];
  /** A fresh pair for every behaviour. */
  openPair(family: Family): Promise<PortPair>;
}
