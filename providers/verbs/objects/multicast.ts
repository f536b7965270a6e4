/** Attaching datagram queue pairs to multicast groups; the addon makes the host a member too. */
import {
  type Gid,
  ipFromGid,
  isIpv4Gid,
  isMulticastGid,
  type MulticastOptions,
  SpiError,
} from '../../../core/spi/index.js';
import type { OpenDevice } from './open-device.js';
import { check } from '../system/errno.js';
import { textOf } from '../system/sysfs.js';

/**
 * @throws SpiError: EINVAL (no group), ENETUNREACH (no address of that family), EOPNOTSUPP (an own
 * copy is to be blocked), of the call
 */
export function attachTo(
  device: OpenDevice,
  qp: number,
  group: Gid,
  { loopback = true, sendOnly = false }: MulticastOptions = {},
): void {
  const local = checked(device, group);
  if (sendOnly) return;
  if (!loopback) {
    const why = `verbs devices cannot block a queue pair's own copy of what it sends to a group`;
    throw new SpiError('EOPNOTSUPP', `${ipFromGid(group)} with loopback false: ${why}`);
  }
  const netdev = netdevOf(device, local);
  check('ibv_attach_mcast', device.addon.multicast(qp, group, 1, netdev), ipFromGid(group));
}

/** @throws as `attachTo` */
export function detachFrom(device: OpenDevice, qp: number, group: Gid): void {
  checked(device, group);
  check('ibv_detach_mcast', device.addon.multicast(qp, group, 0), ipFromGid(group));
}

/** Place in `gids` of the address that the group is joined at. */
function checked({ name, gids }: OpenDevice, group: Gid): number {
  if (!isMulticastGid(group)) {
    throw new SpiError('EINVAL', `${ipFromGid(group)} is not the address of a group`);
  }
  const isIpv4 = isIpv4Gid(group);
  const index = gids.findIndex((gid) => isIpv4Gid(gid) === isIpv4);
  if (index >= 0) return index;
  const family = isIpv4 ? 'IPv4' : 'IPv6';
  throw new SpiError('ENETUNREACH', `the port of ${name} has no ${family} address`);
}

/** RoCE: the interface that has the address. InfiniBand has none there. */
function netdevOf(device: OpenDevice, gidIndex: number): string | undefined {
  const { name, attributes } = device;
  const port = `/sys/class/infiniband/${name}/ports/${attributes.portNumber}`;
  const index = device.hardwareGidIndex(gidIndex);
  return textOf(`${port}/gid_attrs/ndevs/${index}`) || undefined;
}
