import assert from 'node:assert/strict';
import { ipFromGid, SpiError } from '../../../core/spi/index.js';
import {
  chooseDevice,
  type DeviceRequest,
} from '../../../providers/verbs/opening/choose-device.js';
import type { SystemSnapshot } from '../../../providers/verbs/system/system.js';
import {
  bareMachine,
  irdmaRoce,
  iwarp,
  mlx5Infiniband,
  mlx5Roce,
  oldRoce,
  rxe,
  twoPorts,
} from './systems.js';

interface Case {
  readonly title: string;
  readonly system: SystemSnapshot;
  readonly request: DeviceRequest;
  /** `device port gidIndex type`, and the address that is bound. */
  readonly gives: string;
  readonly reason: RegExp;
  readonly warning?: RegExp;
}

const siw = iwarp('siw0', 'eth0');
const from = (source: string): { route: { source: string } } => ({ route: { source } });

const chosen: readonly Case[] = [
  {
    title: 'rxe by name: IPv4 before link-local, although that is index 0',
    system: rxe,
    request: { device: 'rxe0' },
    gives: 'rxe0 1 1 RoCE v2 10.77.0.2',
    reason: /^rxe0 was named; GID 1 \(RoCE v2, 10\.77\.0\.2, eth0\).*RoCE v2 over IPv4/,
  },
  {
    title: 'rxe by the name of its interface',
    system: rxe,
    request: { device: 'eth0' },
    gives: 'rxe0 1 1 RoCE v2 10.77.0.2',
    reason: /^eth0 is rxe0 port 1; GID 1/,
  },
  {
    title: 'rxe by an address of our own',
    system: rxe,
    request: { address: 'fd77::2' },
    gives: 'rxe0 1 2 RoCE v2 fd77::2',
    reason: /^fd77::2 is our own on eth0: GID 2/,
  },
  {
    title: 'an address of our own, written in another way',
    system: rxe,
    request: { address: 'FD77:0:0::0:2' },
    gives: 'rxe0 1 2 RoCE v2 fd77::2',
    reason: /^fd77::2 is our own/,
  },
  {
    title: 'a remote address: the route decides',
    system: rxe,
    request: { address: '10.77.0.1', ...from('10.77.0.2') },
    gives: 'rxe0 1 1 RoCE v2 10.77.0.2',
    reason: /^10\.77\.0\.1 is reached from 10\.77\.0\.2 on eth0: GID 1 \(RoCE v2/,
  },
  {
    title: 'a link-local peer needs the zone',
    system: rxe,
    request: { address: 'fe80::1%eth0', ...from('fe80::5054:ff:fe4d:2') },
    gives: 'rxe0 1 0 RoCE v2 fe80::5054:ff:fe4d:2%eth0',
    reason: /^fe80::1%eth0 is reached from fe80::5054:ff:fe4d:2 on eth0/,
  },
  {
    title: 'nothing asked, one device',
    system: rxe,
    request: {},
    gives: 'rxe0 1 1 RoCE v2 10.77.0.2',
    reason: /^rxe0 is the only usable device; GID 1/,
  },
  {
    title: 'mlx5: the same address as RoCE v1 and v2, v2 is taken',
    system: mlx5Roce,
    request: { device: 'mlx5_0' },
    gives: 'mlx5_0 1 3 RoCE v2 192.168.1.10',
    reason: /GID 3 \(RoCE v2, 192\.168\.1\.10, ens1f0np0\)/,
  },
  {
    title: 'mlx5: by address too',
    system: mlx5Roce,
    request: { address: '192.168.1.10' },
    gives: 'mlx5_0 1 3 RoCE v2 192.168.1.10',
    reason: /GID 3 \(RoCE v2/,
  },
  {
    title: 'mlx5: v1 for whoever insists',
    system: mlx5Roce,
    request: { device: 'mlx5_0', gidIndex: 2 },
    gives: 'mlx5_0 1 2 RoCE v1 192.168.1.10',
    reason: /^mlx5_0 was named, and GID 2 \(RoCE v1/,
  },
  {
    title: 'mlx5: a port that is down, for whoever insists, with a warning',
    system: mlx5Roce,
    request: { device: 'mlx5_1', port: 1 },
    gives: 'mlx5_1 1 3 RoCE v2 192.168.2.10',
    reason: /^mlx5_1 port 1 was named/,
    warning: /^mlx5_1 port 1 is DOWN \(Disabled\)$/,
  },
  {
    title: 'mlx5: nothing asked, the device that is down does not count',
    system: mlx5Roce,
    request: {},
    gives: 'mlx5_0 1 3 RoCE v2 192.168.1.10',
    reason: /^mlx5_0 is the only usable device/,
  },
  {
    title: 'InfiniBand by name: the address is that of IP over InfiniBand',
    system: mlx5Infiniband,
    request: { device: 'mlx5_0' },
    gives: 'mlx5_0 1 0 IB 10.10.0.1',
    reason: /GID 0 \(IB, fe80::7cfe:9003:12:3456\).*InfiniBand/,
  },
  {
    title: 'InfiniBand by a remote address, through IP over InfiniBand',
    system: mlx5Infiniband,
    request: { address: '10.10.0.9', ...from('10.10.0.1') },
    gives: 'mlx5_0 1 0 IB 10.10.0.1',
    reason: /^10\.10\.0\.9 is reached from 10\.10\.0\.1 on ib0/,
  },
  {
    title: 'iWARP by address: the MAC address is what joins interface and device',
    system: siw,
    request: { address: '10.5.0.1' },
    gives: 'siw0 1 0 iWARP 10.5.0.1',
    reason: /iWARP/,
  },
  {
    title: 'irdma as iWARP by name',
    system: iwarp('irdma0', 'ens801f0'),
    request: { device: 'irdma0' },
    gives: 'irdma0 1 0 iWARP 10.5.0.1',
    reason: /^irdma0 was named/,
  },
  {
    title: 'irdma as RoCE: a VLAN has a GID of its own',
    system: irdmaRoce,
    request: { address: '10.1.100.7', ...from('10.1.100.1') },
    gives: 'irdma0 1 2 RoCE v2 10.1.100.1',
    reason: /on ens801f0\.100: GID 2/,
  },
  {
    title: 'several devices: the first in natural order',
    system: irdmaRoce,
    request: {},
    gives: 'irdma0 1 1 RoCE v2 10.1.0.1',
    reason: /^irdma0 is the first of the usable devices irdma0, irdma2, irdma10;/,
  },
  {
    title: 'two ports: the first one that is up',
    system: twoPorts,
    request: { device: 'mlx4_0' },
    gives: 'mlx4_0 2 3 RoCE v2 10.9.0.1',
    reason: /of port 2 is taken/,
  },
  {
    title: 'an interface, its port and its GID, as dat.conf names them',
    system: irdmaRoce,
    request: { device: 'ens801f0.100', port: 1, gidIndex: 2 },
    gives: 'irdma0 1 2 RoCE v2 10.1.100.1',
    reason: /^ens801f0\.100 is irdma0 port 1; GID 2/,
  },
  {
    title: 'two ports: by interface',
    system: twoPorts,
    request: { device: 'enp1s0d1' },
    gives: 'mlx4_0 2 3 RoCE v2 10.9.0.1',
    reason: /^enp1s0d1 is mlx4_0 port 2/,
  },
  {
    title: 'RoCE v1 when there is nothing else, and it says so',
    system: oldRoce,
    request: { device: 'mlx4_0' },
    gives: 'mlx4_0 1 0 RoCE v1 10.8.0.1',
    reason: /RoCE v1, which RoCE v2 peers do not hear/,
  },
];

interface Refusal {
  readonly title: string;
  readonly system: SystemSnapshot;
  readonly request: DeviceRequest;
  readonly code: SpiError['code'];
  readonly says: RegExp;
}

const refused: readonly Refusal[] = [
  {
    title: 'no RDMA at all',
    system: bareMachine,
    request: {},
    code: 'ENODEV',
    says: /no RDMA device.*modprobe rdma_rxe.*rdma link add rxe0 type rxe netdev eth0/,
  },
  {
    title: 'an unknown name: what there is',
    system: mlx5Roce,
    request: { device: 'mlx5_7' },
    code: 'ENODEV',
    says: /"mlx5_7"; there is mlx5_0 on ens1f0np0; mlx5_1 on ens1f1np1/,
  },
  {
    title: 'an interface without a device',
    system: mlx5Roce,
    request: { device: 'eno1' },
    code: 'ENODEV',
    says: /"eno1"; there is mlx5_0 on ens1f0np0/,
  },
  {
    title: 'a route that leaves by an interface without a device',
    system: mlx5Roce,
    request: { address: '172.16.0.9', ...from('172.16.0.5') },
    code: 'EADDRNOTAVAIL',
    says: /172\.16\.0\.9 is reached from 172\.16\.0\.5 on eno1, but no RDMA device has that/,
  },
  {
    title: 'an address on the right interface whose GID is not there yet',
    system: oldRoce,
    request: { address: '10.4.0.1' },
    code: 'EADDRNOTAVAIL',
    says: /rxe0 has no GID for 10\.4\.0\.1/,
  },
  {
    title: 'loopback',
    system: rxe,
    request: { address: '127.0.0.1' },
    code: 'EADDRNOTAVAIL',
    says: /127\.0\.0\.1 is our own on lo, but no RDMA device.*rxe0 on eth0/,
  },
  {
    title: 'no route',
    system: rxe,
    request: { address: '203.0.113.1', route: { problem: 'there is no way there (ENETUNREACH)' } },
    code: 'ENETUNREACH',
    says: /203\.0\.113\.1 cannot be reached: there is no way there/,
  },
  {
    title: 'what is no address',
    system: rxe,
    request: { address: '10.0.0.256' },
    code: 'EINVAL',
    says: /"10\.0\.0\.256" is not an IP address/,
  },
  {
    title: 'a device that is down',
    system: mlx5Roce,
    request: { device: 'mlx5_1' },
    code: 'ENETUNREACH',
    says: /no port of mlx5_1 is active: mlx5_1 port 1 is DOWN \(Disabled\).*ip link set/,
  },
  {
    title: 'an address of a port that is down',
    system: mlx5Roce,
    request: { address: '192.168.2.10' },
    code: 'ENETUNREACH',
    says: /192\.168\.2\.10 is our own, whose RDMA port is not active: mlx5_1 port 1 is DOWN/,
  },
  {
    title: 'an interface of a port that is down',
    system: twoPorts,
    request: { device: 'enp1s0' },
    code: 'ENETUNREACH',
    says: /port of enp1s0 is not active: mlx4_0 port 1 is DOWN/,
  },
  {
    title: 'a port that is not there',
    system: twoPorts,
    request: { device: 'mlx4_0', port: 3 },
    code: 'EINVAL',
    says: /mlx4_0 has no port 3; it has 1, 2/,
  },
  {
    title: 'a GID that is not there: those that are',
    system: rxe,
    request: { device: 'rxe0', gidIndex: 9 },
    code: 'EINVAL',
    says: /rxe0 port 1 has no GID 9; in use: GID 0 \(RoCE v2, fe80/,
  },
  {
    title: 'device and address',
    system: rxe,
    request: { device: 'rxe0', address: '10.77.0.2' },
    code: 'EINVAL',
    says: /device "rxe0" or address "10\.77\.0\.2", not both/,
  },
  {
    title: 'a port of nothing',
    system: rxe,
    request: { port: 1 },
    code: 'EINVAL',
    says: /port 1 is of a device: name that too/,
  },
  {
    title: 'a GID index with an address',
    system: rxe,
    request: { address: '10.77.0.2', gidIndex: 1 },
    code: 'EINVAL',
    says: /gidIndex 1 is of a device/,
  },
  {
    title: 'an interface, at another port',
    system: rxe,
    request: { device: 'eth0', port: 2 },
    code: 'EINVAL',
    says: /^eth0 is rxe0 port 1$/,
  },
  {
    title: 'an interface, with a GID of another one',
    system: irdmaRoce,
    request: { device: 'ens801f0', gidIndex: 2 },
    code: 'EINVAL',
    says: /^ens801f0, which is irdma0 port 1, has no GID 2; in use: GID 0.*, GID 1.* ens801f0\)$/,
  },
];

describe('verbs: device choice', () => {
  for (const { title, system, request, gives, reason, warning } of chosen) {
    it(title, () => {
      const choice = chooseDevice(system, request);
      const { device, port, gidIndex, gidType, address = '-' } = choice;
      assert.equal(`${device} ${port} ${gidIndex} ${gidType} ${address}`, gives);
      assert.match(choice.reason, reason);
      if (warning === undefined) assert.equal(choice.warning, undefined);
      else assert.match(choice.warning ?? '', warning);
      const entry = system.devices
        .find(({ name }) => name === device)
        ?.ports.find(({ number }) => number === port)
        ?.gids.find(({ index }) => index === gidIndex);
      assert.equal(ipFromGid(choice.gid), ipFromGid(entry!.gid));
    });
  }

  for (const { title, system, request, code, says } of refused) {
    it(`refuses: ${title}`, () => {
      assert.throws(
        () => chooseDevice(system, request),
        (error) => {
          assert.ok(error instanceof SpiError, String(error));
          assert.equal(error.code, code, error.message);
          assert.match(error.message, says);
          return true;
        },
      );
    });
  }
});
