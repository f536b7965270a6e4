/**
 * The 40 bytes in front of every received datagram (IBTA 11.4.1.2): on RoCEv2 the IP header, IPv6
 * as it came, IPv4 in the last 20 bytes with the first 20 undefined (IBTA annex A17).
 */
import { type Gid, gidEquals } from './address.js';

const IPV4_AT = 20;

export interface GrhAddresses {
  readonly source: Gid;
  readonly destination: Gid;
}

/** Source and destination of a received datagram; undefined if there is no IP header. */
export function grhAddresses(bytes: Uint8Array, at = 0): GrhAddresses | undefined {
  if (looksLikeIpv4(bytes, at)) {
    return {
      source: mapped(bytes, at + IPV4_AT + 12),
      destination: mapped(bytes, at + IPV4_AT + 16),
    };
  }
  if (versionAt(bytes, at) !== 6) return undefined;
  return { source: bytes.slice(at + 8, at + 24), destination: bytes.slice(at + 24, at + 40) };
}

/** The undefined bytes may look like IPv6: then only a correct IPv4 checksum means IPv4. */
function looksLikeIpv4(bytes: Uint8Array, at: number): boolean {
  if (versionAt(bytes, at + IPV4_AT) !== 4) return false;
  if (versionAt(bytes, at) !== 6) return true;
  return bytes[at + IPV4_AT] === 0x45 && ipv4ChecksumIsRight(bytes, at + IPV4_AT);
}

function versionAt(bytes: Uint8Array, at: number): number {
  return (bytes[at] ?? 0) >>> 4;
}

function ipv4ChecksumIsRight(bytes: Uint8Array, at: number): boolean {
  let sum = 0;
  for (let i = 0; i < 20; i += 2) sum += ((bytes[at + i] ?? 0) << 8) | (bytes[at + i + 1] ?? 0);
  sum = (sum & 0xffff) + (sum >>> 16);
  return (sum & 0xffff) + (sum >>> 16) === 0xffff;
}

function mapped(bytes: Uint8Array, at: number): Gid {
  const gid = new Uint8Array(16);
  gid[10] = gid[11] = 0xff;
  gid.set(bytes.subarray(at, at + 4), 12);
  return gid;
}

/** Index of our address in the GID table; 0, the default source, if it is no longer there. */
export function localIndexOf(destination: Gid, gids: readonly Gid[]): number {
  return Math.max(
    0,
    gids.findIndex((gid) => gidEquals(gid, destination)),
  );
}
