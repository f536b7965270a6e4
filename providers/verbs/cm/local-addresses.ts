/** The device's addresses: which one to ask from, and the scope of those that need one. */
import { networkInterfaces } from 'node:os';
import {
  type Device,
  type Gid,
  gidEquals,
  gidFromIp,
  ipFromGid,
  isIpv4Gid,
  SpiError,
} from '../../../core/spi/index.js';
import { socketAddressOf, type SocketAddress } from './address.js';
import { isLinkLocal } from '../system/link-local.js';

/** An address of the host: the GID it makes, and the bits of it that its subnet shares. */
interface HostAddress {
  readonly gid: Gid;
  readonly prefixBits: number;
  readonly scopeId: number;
}

const MAPPED_BITS = 96;

export class LocalAddresses {
  /** @param interfaces as os.networkInterfaces() */
  constructor(
    private readonly device: Pick<Device, 'name' | 'gids'>,
    private readonly interfaces: typeof networkInterfaces = networkInterfaces,
  ) {}

  /** Every address that may be the device's, to be listened on at a port. */
  all(port: number): SocketAddress[] {
    const host = this.hostAddresses();
    const gids = this.gidsAreAddresses(host) ? this.device.gids : host.map(({ gid }) => gid);
    const distinct = gids.filter(
      (gid, i) => isSet(gid) && gids.findIndex((other) => gidEquals(other, gid)) === i,
    );
    return distinct.map((gid) => socketAddressOf(gid, port, scopeOf(host, gid)));
  }

  /**
   * On RoCE; the GIDs of InfiniBand and iWARP are names of ports, and IP addresses are those of
   * interfaces that stand on them, which only the kernel knows.
   */
  private gidsAreAddresses(host: readonly HostAddress[]): boolean {
    return this.device.gids.some(
      (gid) => isIpv4Gid(gid) || host.some((address) => gidEquals(address.gid, gid)),
    );
  }

  /**
   * Where to ask from, and how to write the peer's address: the one asked for, else the peer's own
   * (a connection within the host), else one of the peer's subnet, else the first of that family.
   * Without a source the kernel's routes decide.
   * @throws SpiError('ENETUNREACH') when the device has none of the peer's family
   */
  pathTo(
    remote: Gid,
    port: number,
    localGidIndex: number | undefined,
  ): { source: SocketAddress | undefined; destination: SocketAddress } {
    const host = this.hostAddresses();
    if (!this.gidsAreAddresses(host)) {
      return { source: undefined, destination: socketAddressOf(remote, port) };
    }
    const localGid = this.sourceFor(remote, localGidIndex, host);
    const scopeId = scopeOf(host, localGid);
    return {
      source: socketAddressOf(localGid, 0, scopeId),
      destination: socketAddressOf(remote, port, isLinkLocal(remote) ? scopeId : 0),
    };
  }

  /** Index of a GID in the device's table; `hint` where the kernel says that it is. */
  indexOf(gid: Gid, hint: number): number {
    const { gids } = this.device;
    const hinted = gids[hint];
    if (hinted && gidEquals(hinted, gid)) return hint;
    const index = gids.findIndex((other) => gidEquals(other, gid));
    return index < 0 ? hint : index;
  }

  private sourceFor(remote: Gid, index: number | undefined, host: readonly HostAddress[]): Gid {
    const usable = (gid: Gid): boolean =>
      isSet(gid) &&
      isIpv4Gid(gid) === isIpv4Gid(remote) &&
      isLinkLocal(gid) === isLinkLocal(remote);
    const { gids, name } = this.device;
    const chosen = index === undefined ? gids : gids.slice(index, index + 1);
    const candidates = chosen.filter(usable);
    const inSubnet = (gid: Gid): boolean => {
      const prefixBits = host.find((address) => gidEquals(address.gid, gid))?.prefixBits ?? 128;
      return samePrefix(gid, remote, prefixBits);
    };
    const best =
      candidates.find((gid) => gidEquals(gid, remote)) ??
      candidates.find(inSubnet) ??
      candidates[0];
    if (best) return best;
    const family = isIpv4Gid(remote) ? 'IPv4' : isLinkLocal(remote) ? 'link-local IPv6' : 'IPv6';
    const which = index === undefined ? '' : ` at GID index ${index}`;
    throw new SpiError(
      'ENETUNREACH',
      `${name} has no ${family} address${which} to reach ${ipFromGid(remote)} from`,
    );
  }

  private hostAddresses(): HostAddress[] {
    const addresses: HostAddress[] = [];
    for (const { address, cidr, scopeid } of Object.values(this.interfaces()).flatMap(
      (list) => list ?? [],
    )) {
      const gid = gidFromIp(address);
      const bits = Number(cidr?.split('/')[1] ?? (isIpv4Gid(gid) ? 32 : 128));
      const prefixBits = isIpv4Gid(gid) ? MAPPED_BITS + bits : bits;
      addresses.push({ gid, prefixBits, scopeId: scopeid ?? 0 });
    }
    return addresses;
  }
}

function scopeOf(host: readonly HostAddress[], gid: Gid): number {
  if (!isLinkLocal(gid)) return 0;
  return host.find((address) => gidEquals(address.gid, gid))?.scopeId ?? 0;
}

function isSet(gid: Gid): boolean {
  return gid.some((byte) => byte !== 0);
}

function samePrefix(a: Gid, b: Gid, bits: number): boolean {
  for (let bit = 0; bit < bits; bit += 8) {
    const mask = bits - bit >= 8 ? 0xff : 0xff & (0xff << (8 - (bits - bit)));
    if ((((a[bit >> 3] ?? 0) ^ (b[bit >> 3] ?? 0)) & mask) !== 0) return false;
  }
  return true;
}
