/** Packets of a simulated wire as Ethernet frames, so that a capture file can hold them. */
import { gidFromIp, isIpv4Gid } from '../../core/spi/index.js';
import type { TappedPacket } from '../../providers/mock/wire-packet.js';

const ETHERNET_BYTES = 14;
const IPV4_BYTES = 20;
const IPV6_BYTES = 40;
const UDP_BYTES = 8;
const UDP = 17;
const ROCE_PORT = 4791;
const SOURCE_PORT = 49_152;
const HOP_LIMIT = 64;

/** The frame that a network card would have put on the wire. */
export function frameOf(packet: TappedPacket): Buffer {
  const { from, to } = packet.flow;
  return frame(from, to, packet.buffer.subarray(0, packet.length));
}

/**
 * @param from IP address in text
 * @param payload BTH to ICRC
 */
export function frame(from: string, to: string, payload: Uint8Array): Buffer {
  const [source, destination] = [gidFromIp(from), gidFromIp(to)];
  const isIpv4 = isIpv4Gid(source);
  const ipBytes = isIpv4 ? IPV4_BYTES : IPV6_BYTES;
  const bytes = Buffer.alloc(ETHERNET_BYTES + ipBytes + UDP_BYTES + payload.length);
  bytes.set([2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1]);
  bytes.writeUInt16BE(isIpv4 ? 0x0800 : 0x86dd, 12);
  const ip = bytes.subarray(ETHERNET_BYTES);
  if (isIpv4) writeIpv4(ip, source, destination, UDP_BYTES + payload.length);
  else writeIpv6(ip, source, destination, UDP_BYTES + payload.length);
  const udp = ip.subarray(ipBytes);
  udp.writeUInt16BE(SOURCE_PORT, 0);
  udp.writeUInt16BE(ROCE_PORT, 2);
  udp.writeUInt16BE(UDP_BYTES + payload.length, 4);
  udp.set(payload, UDP_BYTES);
  // Optional over IPv4, and not sent there.
  if (!isIpv4) udp.writeUInt16BE(udpChecksum(source, destination, udp), 6);
  return bytes;
}

function writeIpv4(ip: Buffer, source: Uint8Array, destination: Uint8Array, bytes: number): void {
  ip[0] = 0x45;
  ip.writeUInt16BE(IPV4_BYTES + bytes, 2);
  ip.writeUInt16BE(0x4000, 6);
  ip[8] = HOP_LIMIT;
  ip[9] = UDP;
  ip.set(source.subarray(12), 12);
  ip.set(destination.subarray(12), 16);
  ip.writeUInt16BE(checksum(ip.subarray(0, IPV4_BYTES)), 10);
}

function writeIpv6(ip: Buffer, source: Uint8Array, destination: Uint8Array, bytes: number): void {
  ip.writeUInt32BE(0x60000000, 0);
  ip.writeUInt16BE(bytes, 4);
  ip[6] = UDP;
  ip[7] = HOP_LIMIT;
  ip.set(source, 8);
  ip.set(destination, 24);
}

/** Over the pseudo header of IPv6 (RFC 8200, 8.1); 0 is written as its complement. */
function udpChecksum(source: Uint8Array, destination: Uint8Array, udp: Buffer): number {
  const pseudo = Buffer.alloc(8);
  pseudo.writeUInt32BE(udp.length, 0);
  pseudo[7] = UDP;
  return checksum(Buffer.concat([source, destination, pseudo, udp])) || 0xffff;
}

/** RFC 1071. */
function checksum(bytes: Buffer): number {
  let sum = 0;
  for (let at = 0; at + 1 < bytes.length; at += 2) sum += bytes.readUInt16BE(at);
  if (bytes.length % 2 === 1) sum += (bytes.at(-1) ?? 0) << 8;
  while (sum > 0xffff) sum = (sum & 0xffff) + (sum >>> 16);
  return ~sum & 0xffff;
}
