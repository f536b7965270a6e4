/**
 * The 40-byte area in front of every received datagram (IBTA 11.4.1.2; RoCEv2: the IP header). The
 * port hands on the addresses only, so the header is made from them: IPv6 whole, IPv4 in the last
 * 20 bytes with a right checksum, by which consumers tell the two apart.
 */
import { type Gid, GRH_LENGTH } from '../../../core/spi/index.js';
import type { ReceivedPacket } from '../common/received-packet.js';

const UDP = 17;
const UDP_HEADER = 8;
const ICRC = 4;
const IPV4_HEADER = 20;
const HOP_LIMIT = 64;

/** Writes the area for a packet that was sent to `destination`. */
export function writeGrhArea(area: Uint8Array, rx: ReceivedPacket, destination: Gid): void {
  const view = new DataView(area.buffer, area.byteOffset, GRH_LENGTH);
  area.fill(0, 0, GRH_LENGTH);
  const payload = rx.payloadOffset - rx.offset + rx.payloadLength + (-rx.payloadLength & 3);
  const udpLength = UDP_HEADER + payload + ICRC;
  if (rx.isIpv6) {
    view.setUint32(0, 0x60000000);
    view.setUint16(4, udpLength);
    view.setUint8(6, UDP);
    view.setUint8(7, HOP_LIMIT);
    view.setUint32(8, rx.source0);
    view.setUint32(12, rx.source1);
    view.setUint32(16, rx.source2);
    view.setUint32(20, rx.source3);
    area.set(destination, 24);
    return;
  }
  view.setUint8(20, 0x45);
  view.setUint16(22, IPV4_HEADER + udpLength);
  view.setUint16(26, 0x4000);
  view.setUint8(28, HOP_LIMIT);
  view.setUint8(29, UDP);
  view.setUint32(32, rx.source3);
  for (let i = 0; i < 4; i++) area[36 + i] = destination[12 + i] ?? 0;
  view.setUint16(30, ipv4Checksum(view, 20));
}

/** RFC 1071 over the 20 bytes at `at`, whose checksum field is zero. */
function ipv4Checksum(view: DataView, at: number): number {
  let sum = 0;
  for (let i = 0; i < IPV4_HEADER; i += 2) sum += view.getUint16(at + i);
  while (sum > 0xffff) sum = (sum & 0xffff) + (sum >>> 16);
  return ~sum & 0xffff;
}
