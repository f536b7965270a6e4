/** Which GID of a port is taken when none is named, and how a GID is written for people. */
import { type Gid, ipFromGid, isIpv4Gid } from '../../../core/spi/index.js';
import { isLinkLocal } from '../system/link-local.js';
import type { GidEntry, GidType } from '../system/system.js';

interface Preference {
  readonly takes: (entry: GidEntry) => boolean;
  /** What people are told. */
  readonly why: string;
}

const of =
  (type: GidType, gid: (gid: Gid) => boolean = () => true) =>
  (entry: GidEntry): boolean =>
    entry.type === type && gid(entry.gid);

const isGlobalIpv6 = (gid: Gid): boolean => !isIpv4Gid(gid) && !isLinkLocal(gid);

/** Best first. RoCE v1 is not routed, and peers on v2 do not hear it. */
const PREFERENCES: readonly Preference[] = [
  { takes: of('RoCE v2', isIpv4Gid), why: 'RoCE v2 over IPv4' },
  { takes: of('RoCE v2', isGlobalIpv6), why: 'RoCE v2 over IPv6, none over IPv4' },
  { takes: of('RoCE v2'), why: 'RoCE v2 link-local, the interface has no other address' },
  { takes: of('IB'), why: 'InfiniBand' },
  { takes: of('iWARP'), why: 'iWARP' },
  { takes: of('RoCE v1'), why: 'RoCE v1, which RoCE v2 peers do not hear: there is no v2 GID' },
];

/** The best of these, and of equals the one with the lowest index. */
export function preferredGid(
  entries: readonly GidEntry[],
): { readonly entry: GidEntry; readonly why: string } | undefined {
  for (const { takes, why } of PREFERENCES) {
    const entry = entries.find(takes);
    if (entry !== undefined) return { entry, why };
  }
  return undefined;
}

/** `GID 1 (RoCE v2, 10.0.0.1, eth0)`. */
export function gidText({ index, gid, type, netdev }: GidEntry): string {
  const where = netdev === undefined ? '' : `, ${netdev}`;
  return `GID ${index} (${type}, ${ipFromGid(gid)}${where})`;
}
