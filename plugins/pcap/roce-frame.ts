/**
 * Rebuilds the IP and UDP headers and the ICRC of a packet, which the port does not pass on. The
 * IPv4 identification is 0 and the hop limit 64, although the wire may have had other values; the
 * ICRC matches the rebuilt headers.
 */
import { crc32 } from 'node:zlib';
import { type Gid, isIpv4Gid } from '../../core/spi/index.js';

export const ICRC_BYTES = 4;
const UDP_BYTES = 8;
const IPV4_BYTES = 20;
const IPV6_BYTES = 40;
const PROTOCOL_UDP = 17;
const HOP_LIMIT = 64;
const DONT_FRAGMENT = 0x40;

/** Initial state of every ICRC: eight bytes of ones in place of InfiniBand's local header. */
const CRC_OF_LRH = crc32(new Uint8Array(8).fill(0xff));

/** Bytes of the IP and UDP headers. */
export function headerBytes(source: Gid): number {
  return (isIpv4Gid(source) ? IPV4_BYTES : IPV6_BYTES) + UDP_BYTES;
}

export interface Flow {
  readonly source: Gid;
  readonly destination: Gid;
  readonly sourcePort: number;
  readonly destinationPort: number;
}

/**
 * Completes a frame: writes the headers before the packet that `bytes` holds, and the ICRC after
 * it.
 * @param bytes header area, packet from BTH to pad, and room for the ICRC
 */
export function completeFrame(bytes: Uint8Array, flow: Flow): void {
  const start = headerBytes(flow.source);
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const ipv4 = start === IPV4_BYTES + UDP_BYTES;
  if (ipv4) writeIpv4(bytes, view, flow);
  else writeIpv6(bytes, view, flow);
  const udp = start - UDP_BYTES;
  view.setUint16(udp, flow.sourcePort);
  view.setUint16(udp + 2, flow.destinationPort);
  view.setUint16(udp + 4, bytes.length - udp);
  view.setUint16(udp + 6, 0);
  view.setUint32(bytes.length - ICRC_BYTES, icrcOf(bytes, start, ipv4), true);
  // A UDP datagram over IPv6 always has a checksum.
  if (!ipv4) view.setUint16(udp + 6, udpChecksum(bytes, udp) || 0xffff);
}

function writeIpv4(bytes: Uint8Array, view: DataView, { source, destination }: Flow): void {
  bytes.fill(0, 0, IPV4_BYTES);
  bytes[0] = 0x45;
  view.setUint16(2, bytes.length);
  bytes[6] = DONT_FRAGMENT;
  bytes[8] = HOP_LIMIT;
  bytes[9] = PROTOCOL_UDP;
  bytes.set(source.subarray(12), 12);
  bytes.set(destination.subarray(12), 16);
  view.setUint16(10, fold(sum(bytes, 0, IPV4_BYTES)));
}

function writeIpv6(bytes: Uint8Array, view: DataView, { source, destination }: Flow): void {
  bytes.fill(0, 0, 8);
  bytes[0] = 0x60;
  view.setUint16(4, bytes.length - IPV6_BYTES);
  bytes[6] = PROTOCOL_UDP;
  bytes[7] = HOP_LIMIT;
  bytes.set(source, 8);
  bytes.set(destination, 24);
}

const masked = new Uint8Array(IPV6_BYTES + UDP_BYTES);

/** The ICRC of IBTA A17: fields that routers may change count as ones. */
function icrcOf(bytes: Uint8Array, start: number, ipv4: boolean): number {
  masked.set(bytes.subarray(0, start));
  const ones = ipv4 ? [1, 8, 10, 11] : [1, 2, 3, 7];
  for (const at of ones) masked[at] = 0xff;
  if (!ipv4) masked[0] = 0x6f;
  masked[start - 2] = 0xff;
  masked[start - 1] = 0xff;
  const headers = crc32(masked.subarray(0, start), CRC_OF_LRH);
  const packet = bytes.subarray(start, bytes.length - ICRC_BYTES);
  const congestion = packet[4] ?? 0;
  packet[4] = 0xff;
  const icrc = crc32(packet, headers);
  packet[4] = congestion;
  return icrc;
}

/** UDP checksum over the pseudo header (RFC 8200, 8.1) and the datagram. */
function udpChecksum(bytes: Uint8Array, udp: number): number {
  const length = bytes.length - udp;
  return fold(sum(bytes, 8, IPV6_BYTES) + sum(bytes, udp, bytes.length) + length + PROTOCOL_UDP);
}

function sum(bytes: Uint8Array, from: number, to: number): number {
  let total = 0;
  for (let at = from; at < to; at += 2) {
    total += ((bytes[at] ?? 0) << 8) + (at + 1 < to ? (bytes[at + 1] ?? 0) : 0);
  }
  return total;
}

function fold(total: number): number {
  let rest = total;
  while (rest > 0xffff) rest = (rest & 0xffff) + Math.floor(rest / 0x10000);
  return ~rest & 0xffff;
}
