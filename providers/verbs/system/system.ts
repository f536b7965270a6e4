/**
 * RDMA resources of this machine, as data: devices, ports and GIDs of sysfs, and the addresses of
 * its network interfaces. All code that chooses or explains works on this, not on the machine.
 */
import type { Gid } from '../../../core/spi/index.js';

/** Port states by their names in sysfs (IBTA 14.2.5.6). */
export type PortState = 'NOP' | 'DOWN' | 'INIT' | 'ARMED' | 'ACTIVE' | 'ACTIVE_DEFER';

export type LinkLayer = 'InfiniBand' | 'Ethernet' | 'Unspecified';

/**
 * How a GID goes on the wire. `IB` and `RoCE v1` are one word in sysfs, told apart by the link
 * layer; an iWARP port has a GID in name only: it holds the MAC address.
 */
export type GidType = 'IB' | 'RoCE v1' | 'RoCE v2' | 'iWARP';

export interface GidEntry {
  /** Place in the port's table. */
  readonly index: number;
  readonly gid: Gid;
  readonly type: GidType;
  /** Network interface that it belongs to; absent on InfiniBand. */
  readonly netdev?: string;
}

export interface RdmaPort {
  /** From 1. */
  readonly number: number;
  readonly state: PortState;
  /** As sysfs has it: `LinkUp`, `Polling`, `Disabled`. */
  readonly physicalState: string;
  readonly linkLayer: LinkLayer;
  /** As sysfs has it: `100 Gb/sec (4X EDR)`. */
  readonly rate: string;
  /** The entries that are in use. */
  readonly gids: readonly GidEntry[];
  /** Character device for management datagrams, such as `umad0`; absent without ib_umad. */
  readonly umad?: string;
}

export interface RdmaDevice {
  readonly name: string;
  /** RNIC is iWARP. */
  readonly nodeType: 'CA' | 'RNIC' | 'other';
  readonly nodeGuid: string;
  readonly firmware: string;
  /** Character device of the verbs, such as `uverbs0`; absent without ib_uverbs. */
  readonly uverbs?: string;
  readonly ports: readonly RdmaPort[];
}

export interface NetworkInterface {
  readonly name: string;
  readonly mtuBytes: number;
  /** Hardware address: 6 bytes, 20 with IP over InfiniBand (the last 16 are the port's GID). */
  readonly hardwareAddress: Uint8Array;
  /** IP addresses in text, IPv4 first; without zone. */
  readonly addresses: readonly string[];
}

export interface SystemSnapshot {
  /** In natural order of their names. */
  readonly devices: readonly RdmaDevice[];
  readonly interfaces: readonly NetworkInterface[];
}
