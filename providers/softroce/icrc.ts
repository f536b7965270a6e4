/**
 * The ICRC of a RoCEv2 packet as a socket sees it (IBTA A17.3.3; wire facts 1.6, 1.7.4), over
 * node:zlib. The native addon has its own, quicker one.
 */
import { crc32 } from 'node:zlib';
import type { Gid } from '../../core/spi/index.js';
import { isIpv4Gid } from '../../core/spi/index.js';

export const BTH_BYTES = 12;
export const ICRC_BYTES = 4;

export interface Endpoint {
  readonly gid: Gid;
  readonly port: number;
}

/**
 * CRC of the masked headers before the BTH, to be continued over the packet.
 * @param datagramBytes from the BTH to the ICRC
 * @param identification of the IPv4 header; DF is taken as set
 */
export function headerCrc(
  source: Endpoint,
  destination: Endpoint,
  datagramBytes: number,
  identification = 0,
): number {
  const ipv4 = isIpv4Gid(source.gid);
  const ipBytes = ipv4 ? 20 : 40;
  // Ones stay where a field is masked, and for the link header of native InfiniBand in front.
  const bytes = new Uint8Array(8 + ipBytes + 8).fill(0xff);
  const view = new DataView(bytes.buffer);
  if (ipv4) {
    view.setUint8(8, 0x45);
    view.setUint16(10, 20 + 8 + datagramBytes);
    view.setUint16(12, identification);
    view.setUint16(14, 0x4000);
    view.setUint8(17, 17);
    bytes.set(source.gid.subarray(12), 20);
    bytes.set(destination.gid.subarray(12), 24);
  } else {
    view.setUint8(8, 0x6f);
    view.setUint16(12, 8 + datagramBytes);
    view.setUint8(14, 17);
    bytes.set(source.gid, 16);
    bytes.set(destination.gid, 32);
  }
  view.setUint16(8 + ipBytes, source.port);
  view.setUint16(8 + ipBytes + 2, destination.port);
  view.setUint16(8 + ipBytes + 4, 8 + datagramBytes);
  return crc32(bytes);
}

/**
 * The ICRC as it stands in the last four bytes, read little-endian.
 * @param packet BTH to pad; byte 4 is masked during the call
 */
export function icrcOf(header: number, packet: Uint8Array): number {
  const congestion = packet[4] ?? 0;
  packet[4] = 0xff;
  const value = crc32(packet, header);
  packet[4] = congestion;
  return value;
}

// Registers in reflected order are polynomials: bit 31 is x^0. From the identification to the BTH
// there are 24 bytes, its own two included; each byte clocked in multiplies by x^8.
const POLYNOMIAL = 0xedb88320;
const ID_TO_BTH_BYTES = 24;

function multiply(a: number, b: number): number {
  let product = 0;
  for (let bit = 31; bit >= 0; bit--) {
    if ((a >>> bit) & 1) product ^= b;
    b = b & 1 ? (b >>> 1) ^ POLYNOMIAL : b >>> 1;
  }
  return product >>> 0;
}

/** x^-(8 * 2^j) */
const inversePowers = ((): number[] => {
  let power = 0x80000000;
  for (let bit = 0; bit < 8; bit++) {
    power = power & 0x80000000 ? (((power ^ POLYNOMIAL) << 1) | 1) >>> 0 : (power << 1) >>> 0;
  }
  const powers = [power];
  for (let j = 1; j < 17; j++) powers.push((power = multiply(power, power)));
  return powers;
})();

/**
 * The IPv4 identification that the sender's ICRC was made with.
 * @param difference received ICRC XOR the one made with identification 0
 * @param bytes from the BTH to the pad
 * @returns -1 when no identification explains the difference: the packet is corrupt
 */
export function solveIdentification(difference: number, bytes: number): number {
  let value = difference >>> 0;
  let clocked = ID_TO_BTH_BYTES + bytes;
  for (let j = 0; clocked !== 0; j++, clocked >>>= 1) {
    if (clocked & 1) value = multiply(value, inversePowers[j] ?? 0);
  }
  if (value >>> 16 !== 0) return -1;
  return ((value & 0xff) << 8) | (value >>> 8);
}
