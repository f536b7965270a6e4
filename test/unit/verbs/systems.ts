/** Machines as sysfs and the interfaces show them: what device choice is tested with. */
import { gidFromIp } from '../../../core/spi/index.js';
import type {
  GidEntry,
  GidType,
  NetworkInterface,
  PortState,
  RdmaDevice,
  RdmaPort,
  SystemSnapshot,
} from '../../../providers/verbs/system/system.js';

const LINK_LOCAL = 'fe80::5054:ff:fe4d:2';
const MAC = [0x52, 0x54, 0, 0x4d, 0, 2];
const IB_GID = 'fe80::7cfe:9003:12:3456';

export function gid(index: number, text: string, type: GidType, netdev?: string): GidEntry {
  return { index, gid: gidFromIp(text), type, ...(netdev !== undefined && { netdev }) };
}

/** The table that the kernel fills for one interface: link-local first, each as v1 and v2. */
export function roceGids(netdev: string, addresses: readonly string[]): GidEntry[] {
  return [LINK_LOCAL, ...addresses].flatMap((address, i) => [
    gid(2 * i, address, 'RoCE v1', netdev),
    gid(2 * i + 1, address, 'RoCE v2', netdev),
  ]);
}

export function port(
  number: number,
  gids: readonly GidEntry[],
  more: Partial<RdmaPort> = {},
): RdmaPort {
  return {
    number,
    state: 'ACTIVE',
    physicalState: 'LinkUp',
    linkLayer: 'Ethernet',
    rate: '100 Gb/sec (4X EDR)',
    gids,
    ...more,
  };
}

export const downPort: { state: PortState; physicalState: string } = {
  state: 'DOWN',
  physicalState: 'Disabled',
};

export function device(
  name: string,
  ports: readonly RdmaPort[],
  more: Partial<RdmaDevice> = {},
): RdmaDevice {
  const uverbs = 'uverbs0';
  return { name, nodeType: 'CA', nodeGuid: '', firmware: '16.35.2000', uverbs, ports, ...more };
}

export function netdev(
  name: string,
  addresses: readonly string[],
  hardwareAddress: readonly number[] = MAC,
): NetworkInterface {
  return {
    name,
    mtuBytes: 1500,
    hardwareAddress: Uint8Array.from(hardwareAddress),
    addresses,
  };
}

const loopback = netdev('lo', ['127.0.0.1', '::1'], [0, 0, 0, 0, 0, 0]);

export const bareMachine: SystemSnapshot = {
  devices: [],
  interfaces: [loopback, netdev('eth0', ['10.0.0.1'])],
};

/** One rxe device, whose table has RoCE v2 only. */
export const rxe: SystemSnapshot = {
  devices: [
    device('rxe0', [
      port(1, [
        gid(0, LINK_LOCAL, 'RoCE v2', 'eth0'),
        gid(1, '10.77.0.2', 'RoCE v2', 'eth0'),
        gid(2, 'fd77::2', 'RoCE v2', 'eth0'),
      ]),
    ]),
  ],
  interfaces: [loopback, netdev('eth0', ['10.77.0.2', 'fd77::2', LINK_LOCAL])],
};

/** A RoCE adapter of two functions; the second one is not connected. */
export const mlx5Roce: SystemSnapshot = {
  devices: [
    device('mlx5_0', [port(1, roceGids('ens1f0np0', ['192.168.1.10', '2001:db8::10']))]),
    device('mlx5_1', [port(1, roceGids('ens1f1np1', ['192.168.2.10']), downPort)]),
  ],
  interfaces: [
    loopback,
    netdev('ens1f0np0', ['192.168.1.10', '2001:db8::10', LINK_LOCAL]),
    netdev('ens1f1np1', ['192.168.2.10']),
    netdev('eno1', ['172.16.0.5'], [2, 0, 0, 0, 0, 1]),
  ],
};

/** InfiniBand: the second port of the adapter is down; IP over InfiniBand on the first. */
export const mlx5Infiniband: SystemSnapshot = {
  devices: [
    device('mlx5_0', [
      port(1, [gid(0, IB_GID, 'IB')], { linkLayer: 'InfiniBand' }),
      port(2, [gid(0, 'fe80::7cfe:9003:12:3457', 'IB')], {
        linkLayer: 'InfiniBand',
        ...downPort,
        physicalState: 'Polling',
      }),
    ]),
  ],
  interfaces: [loopback, netdev('ib0', ['10.10.0.1'], [0, 0, 0x10, 0x87, ...gidFromIp(IB_GID)])],
};

/** iWARP: the GID holds the MAC address and no interface is named. */
export function iwarp(name: string, netdevName: string): SystemSnapshot {
  const bytes = new Uint8Array(16);
  bytes.set(MAC);
  const entry: GidEntry = { index: 0, gid: bytes, type: 'iWARP' };
  return {
    devices: [device(name, [port(1, [entry])], { nodeType: 'RNIC' })],
    interfaces: [loopback, netdev(netdevName, ['10.5.0.1'])],
  };
}

/** irdma in RoCE mode: two ports as two devices, a VLAN on the first. */
export const irdmaRoce: SystemSnapshot = {
  devices: [
    device('irdma0', [
      port(1, [
        gid(0, LINK_LOCAL, 'RoCE v2', 'ens801f0'),
        gid(1, '10.1.0.1', 'RoCE v2', 'ens801f0'),
        gid(2, '10.1.100.1', 'RoCE v2', 'ens801f0.100'),
      ]),
    ]),
    device('irdma10', [port(1, [gid(0, '10.3.0.1', 'RoCE v2', 'ens801f2')])]),
    device('irdma2', [port(1, [gid(0, '10.2.0.1', 'RoCE v2', 'ens801f1')])]),
  ].sort((a, b) => a.name.localeCompare(b.name, 'en', { numeric: true })),
  interfaces: [
    loopback,
    netdev('ens801f0', ['10.1.0.1']),
    netdev('ens801f0.100', ['10.1.100.1']),
    netdev('ens801f1', ['10.2.0.1'], [2, 0, 0, 0, 0, 2]),
    netdev('ens801f2', ['10.3.0.1'], [2, 0, 0, 0, 0, 3]),
  ],
};

/** Two ports on one device, as mlx4 has them. */
export const twoPorts: SystemSnapshot = {
  devices: [
    device('mlx4_0', [
      port(1, roceGids('enp1s0', ['10.8.0.1']), downPort),
      port(2, roceGids('enp1s0d1', ['10.9.0.1'])),
    ]),
  ],
  interfaces: [loopback, netdev('enp1s0', ['10.8.0.1']), netdev('enp1s0d1', ['10.9.0.1'])],
};

/** An old adapter that knows RoCE v1 only, and one whose interface has no address. */
export const oldRoce: SystemSnapshot = {
  devices: [
    device('mlx4_0', [port(1, [gid(0, '10.8.0.1', 'RoCE v1', 'enp1s0')])]),
    device('rxe0', [port(1, [gid(0, LINK_LOCAL, 'RoCE v2', 'eth1')])]),
  ],
  interfaces: [loopback, netdev('enp1s0', ['10.8.0.1']), netdev('eth1', ['10.4.0.1'])],
};
