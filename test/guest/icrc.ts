// An ICRC check that shares nothing with the product: zlib's CRC over a masked copy of the packet
// as tcpdump saw it, IPv4 identification included. IBTA annex A17 (RoCEv2).
import { crc32 } from 'node:zlib';

const ETHERTYPE_IPV4 = 0x0800;
const ETHERTYPE_IPV6 = 0x86dd;
const PROTOCOL_UDP = 17;
const ROCE_PORT = 4791;
const ETHERNET_BYTES = 14;
const UDP_BYTES = 8;
const BTH_BYTES = 12;
const ICRC_BYTES = 4;

/** Why the packet is not a RoCEv2 packet with a right ICRC; undefined if it is one. */
export function icrcFault(frame: Buffer): string | undefined {
  const etherType = frame.readUInt16BE(12);
  const isIpv4 = etherType === ETHERTYPE_IPV4;
  if (!isIpv4 && etherType !== ETHERTYPE_IPV6) return `ethertype ${etherType.toString(16)}`;
  const ipBytes = isIpv4 ? 20 : 40;
  const ip = frame.subarray(ETHERNET_BYTES);
  const totalBytes = isIpv4 ? ip.readUInt16BE(2) : ipBytes + ip.readUInt16BE(4);
  if (isIpv4 && ip[0] !== 0x45) return 'IPv4 options';
  if (ip[isIpv4 ? 9 : 6] !== PROTOCOL_UDP) return 'not UDP';
  if (totalBytes > ip.length) return `${totalBytes} bytes by its IP header, ${ip.length} captured`;
  if (totalBytes < ipBytes + UDP_BYTES + BTH_BYTES + ICRC_BYTES) return 'too short for a BTH';

  const masked = Buffer.from(ip.subarray(0, totalBytes));
  const ones = (offset: number, count: number): unknown =>
    masked.fill(0xff, offset, offset + count);
  if (isIpv4) {
    ones(1, 1); // type of service
    ones(8, 1); // time to live
    ones(10, 2); // header checksum
  } else {
    masked.writeUInt32BE((masked.readUInt32BE(0) | 0x0fffffff) >>> 0, 0); // class, flow label
    ones(7, 1); // hop limit
  }
  const udp = ipBytes;
  if (masked.readUInt16BE(udp + 2) !== ROCE_PORT) return 'not port 4791';
  if (masked.readUInt16BE(udp + 4) !== totalBytes - ipBytes) return 'UDP and IP lengths differ';
  ones(udp + 6, 2); // checksum
  ones(udp + UDP_BYTES + 4, 1); // BTH: FECN, BECN, reserved

  const end = totalBytes - ICRC_BYTES;
  const lrhStandIn = Buffer.alloc(8, 0xff);
  const expected = crc32(masked.subarray(0, end), crc32(lrhStandIn));
  const found = ip.readUInt32LE(end);
  return found === expected
    ? undefined
    : `ICRC ${found.toString(16)}, should be ${expected.toString(16)}`;
}
