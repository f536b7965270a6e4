/** Packets of a simulated wire as Ethernet frames, so that a capture file can hold them. */
import { gidFromIp, isIpv4Gid } from '../../core/spi/index.js';
import type { WirePacket } from '../../providers/mock/wire-packet.js';

const ETHERNET_BYTES = 14;
const IPV4_BYTES = 20;
const IPV6_BYTES = 40;
const UDP_BYTES = 8;
const UDP = 17;
const ROCE_PORT = 4791;
const SOURCE_PORT = 49_152;
const HOP_LIMIT = 64;

/** The frame that a network card would have put on the wire. */
export function frameOf(packet: WirePacket): Buffer {
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
  let sum = 0;
  for (let at = 0; at < IPV4_BYTES; at += 2) sum += ip.readUInt16BE(at);
  while (sum > 0xffff) sum = (sum & 0xffff) + (sum >>> 16);
  ip.writeUInt16BE(~sum & 0xffff, 10);
}

function writeIpv6(ip: Buffer, source: Uint8Array, destination: Uint8Array, bytes: number): void {
  ip.writeUInt32BE(0x60000000, 0);
  ip.writeUInt16BE(bytes, 4);
  ip[6] = UDP;
  ip[7] = HOP_LIMIT;
  ip.set(source, 8);
  ip.set(destination, 24);
}
