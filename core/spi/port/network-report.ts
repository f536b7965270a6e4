/**
 * Reports of the network or the own system about packets to a destination, apart from answers. ICMP
 * can be forged by any host that knows the two addresses. It is a hint, recorded and counted, and
 * believed only with other evidence (RFC 5927). A refusal of the own system is true, and may be
 * over in a moment: a link that is down, a filter, no memory.
 */
import { type Gid, ipFromGid, isIpv4Gid } from '../wire/address.js';

export type NetworkReport =
  /** ICMP: nothing listens at the UDP port (RFC 792 type 3 code 3, RFC 4443 type 1 code 4). */
  | { readonly type: 'port-unreachable'; readonly gid: Gid }
  /** ICMP: the host is unreachable; by RFC 1122, 4.2.3.9, this may be temporary. */
  | { readonly type: 'unreachable'; readonly gid: Gid }
  /** ICMP: a router cannot forward IP packets longer than `mtuBytes`. */
  | { readonly type: 'too-big'; readonly gid: Gid; readonly mtuBytes: number }
  /** The own system refused an IP packet of `packetBytes`: its link carries `mtuBytes` (0: ?). */
  | {
      readonly type: 'too-long';
      readonly gid: Gid;
      readonly packetBytes: number;
      readonly mtuBytes: number;
    }
  /** The own system refused a packet for another reason: ENETUNREACH, EPERM, ENOBUFS ... */
  | { readonly type: 'refused'; readonly gid: Gid; readonly code: string }
  /**
   * A fact, not a hint: a path of the port has lost its transport, such as shared memory or a
   * stream. The peer's process or device is gone, or has written something invalid there.
   */
  | { readonly type: 'peer-gone'; readonly gid: Gid; readonly path: number };

export type NetworkReportType = NetworkReport['type'];

/** By number, for ports and flight logs. */
export const NETWORK_REPORT_TYPES: readonly NetworkReportType[] = [
  'port-unreachable',
  'unreachable',
  'too-big',
  'too-long',
  'refused',
  'peer-gone',
];

/**
 * Reasons of a system that refuses a packet, by number in flight records; the first means others.
 */
export const REFUSAL_CODES: readonly string[] = [
  'another error',
  'ENETUNREACH',
  'EHOSTUNREACH',
  'ENETDOWN',
  'EPERM',
  'EACCES',
  'ENOBUFS',
  'ENOMEM',
  'EINVAL',
  'EADDRNOTAVAIL',
  'EHOSTDOWN',
  'ECONNREFUSED',
];

/** The report in words for people. */
export function describeReport(report: NetworkReport): string {
  switch (report.type) {
    case 'port-unreachable':
      return 'ICMP port unreachable';
    case 'unreachable':
      return 'ICMP destination unreachable';
    case 'too-big':
      return `ICMP fragmentation needed: a router carries ${report.mtuBytes} bytes`;
    case 'too-long':
      return (
        `a packet of ${report.packetBytes} bytes refused by our system (EMSGSIZE)` +
        (report.mtuBytes > 0 ? `: the link carries ${report.mtuBytes}` : '')
      );
    case 'refused':
      return `refused by our system (${report.code})`;
    case 'peer-gone':
      return 'the peer is gone: its process has ended, or its device';
  }
}

/** Bytes around the payload of a packet: IP, UDP, the longest RoCE headers and the ICRC. */
function packetOverheadBytes(gid: Gid): number {
  return (isIpv4Gid(gid) ? 20 : 40) + 8 + 48 + 4;
}

/** Bytes of an IP packet of RC with a full path MTU and the headers of a WRITE. */
export function longestPacketBytes(gid: Gid, mtuBytes: number): number {
  return (isIpv4Gid(gid) ? 20 : 40) + 8 + 28 + mtuBytes + 4;
}

const PATH_MTUS: readonly number[] = [4096, 2048, 1024, 512, 256];

/**
 * Advice for packets that are too long for the path to a peer.
 * @param mtuBytes the path's MTU: the longest IP packet that it carries
 */
export function smallerMtuRemedy(gid: Gid, mtuBytes: number): string {
  const peer = ipFromGid(gid);
  const fitting = PATH_MTUS.find((mtu) => mtu + packetOverheadBytes(gid) <= mtuBytes);
  if (fitting === undefined) return `no RoCE packet fits the way to ${peer}`;
  return `if the way to ${peer} carries no more, open the device with mtuBytes: ${fitting}`;
}
