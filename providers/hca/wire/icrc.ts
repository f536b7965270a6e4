/**
 * The invariant CRC (IBTA annex A17): CRC-32 over eight bytes of ones, the IP and UDP headers and
 * the BTH with every field that may change on the way replaced by ones, then the rest as it is.
 * On the wire it is little-endian, the one field of RoCE that is.
 *
 * A sender or receiver sets a `PseudoHeader` for the addresses and ports, then for each packet:
 *
 *     const icrc = icrcPacket(pseudo.begin(lengthBytes, ipId), bytes, bthStart, icrcStart);
 *
 * or step by step, when header and payload are in different places: `begin`, `icrcBth`,
 * `icrcUpdate` as often as needed, `icrcValue`.
 */
import { checkInteger, outOfRange } from '../../../core/spi/checks/index.js';
import { type Gid, isIpv4Gid } from '../../../core/spi/wire/address.js';
import { BTH_LENGTH } from '../../../core/spi/wire/bth.js';
import { crc32Byte, crc32Update } from './crc32.js';

/** The register after the eight bytes of ones that stand for the LRH of native InfiniBand. */
const REGISTER_AFTER_LRH = 0xdebb20e3 | 0;

const ipv4 = { totalLength: 2, id: 4, flags: 6, source: 12, destination: 16, udp: 20 } as const;
const ipv6 = { payloadLength: 4, source: 8, destination: 24, udp: 40 } as const;
const udp = { sourcePort: 0, destinationPort: 2, length: 4, bytes: 8 } as const;

const IP_DONT_FRAGMENT = 0x4000;

/** Masked IPv4 and UDP header: ones for ToS, TTL and both checksums. */
// prettier-ignore
const IPV4_TEMPLATE = Uint8Array.of(
  0x45, 0xff, 0, 0,  0, 0, 0x40, 0,  0xff, 17, 0xff, 0xff,  0, 0, 0, 0,  0, 0, 0, 0,
  0, 0, 0, 0,  0, 0, 0xff, 0xff,
);

/** Masked IPv6 and UDP header: ones for traffic class, flow label, hop limit and checksum. */
// prettier-ignore
const IPV6_TEMPLATE = Uint8Array.of(
  0x6f, 0xff, 0xff, 0xff,  0, 0, 17, 0xff,
  0, 0, 0, 0,  0, 0, 0, 0,  0, 0, 0, 0,  0, 0, 0, 0,
  0, 0, 0, 0,  0, 0, 0, 0,  0, 0, 0, 0,  0, 0, 0, 0,
  0, 0, 0, 0,  0, 0, 0xff, 0xff,
);

/** The masked IP and UDP headers of one flow: 28 or 48 bytes, made once and used per packet. */
export class PseudoHeader {
  private readonly bytes = new Uint8Array(IPV6_TEMPLATE.length);
  private readonly view = new DataView(this.bytes.buffer);
  private ofIpv4 = true;

  get isIpv4(): boolean {
    return this.ofIpv4;
  }

  /**
   * Both GIDs are 16 bytes and of one family: IPv4 if the source is `::ffff:a.b.c.d`.
   * @throws RangeError when a GID is not 16 bytes, a port is not 16 bits or the families differ
   */
  setFlow(sourceGid: Gid, destinationGid: Gid, sourcePort: number, destinationPort: number): this {
    checkGid('sourceGid', sourceGid);
    checkGid('destinationGid', destinationGid);
    checkPort('sourcePort', sourcePort);
    checkPort('destinationPort', destinationPort);
    this.ofIpv4 = isIpv4Gid(sourceGid);
    if (isIpv4Gid(destinationGid) !== this.ofIpv4) {
      throw new RangeError('sourceGid and destinationGid must be of one family, IPv4 or IPv6');
    }
    this.bytes.set(this.ofIpv4 ? IPV4_TEMPLATE : IPV6_TEMPLATE);
    const from = this.ofIpv4 ? 12 : 0;
    const layout = this.ofIpv4 ? ipv4 : ipv6;
    for (let at = from; at < 16; at += 1) {
      this.bytes[layout.source + at - from] = sourceGid[at] as number;
      this.bytes[layout.destination + at - from] = destinationGid[at] as number;
    }
    this.view.setUint16(layout.udp + udp.sourcePort, sourcePort);
    this.view.setUint16(layout.udp + udp.destinationPort, destinationPort);
    return this;
  }

  /**
   * The register after the IP and UDP headers.
   * @param udpPayloadBytes BTH to ICRC inclusive
   * @param ipId IPv4 identification; no meaning for IPv6
   * @param ipFlags IPv4 flags and fragment offset, 16 bits; DF alone unless a raw socket saw more
   */
  begin(udpPayloadBytes: number, ipId = 0, ipFlags: number = IP_DONT_FRAGMENT): number {
    const udpLength = udp.bytes + udpPayloadBytes;
    const view = this.view;
    if (this.ofIpv4) {
      view.setUint16(ipv4.totalLength, ipv4.udp + udpLength);
      view.setUint16(ipv4.id, ipId);
      view.setUint16(ipv4.flags, ipFlags);
      view.setUint16(ipv4.udp + udp.length, udpLength);
      return crc32Update(REGISTER_AFTER_LRH, this.bytes, 0, ipv4.udp + udp.bytes);
    }
    view.setUint16(ipv6.payloadLength, udpLength);
    view.setUint16(ipv6.udp + udp.length, udpLength);
    return crc32Update(REGISTER_AFTER_LRH, this.bytes, 0, ipv6.udp + udp.bytes);
  }
}

/** The register after the 12 bytes of a BTH; byte 4 (FECN, BECN, reserved) counts as ones. */
export function icrcBth(register: number, bytes: Uint8Array, start: number): number {
  const before = crc32Update(register, bytes, start, start + 4);
  return crc32Update(crc32Byte(before, 0xff), bytes, start + 5, start + BTH_LENGTH);
}

/** The register after more bytes: extension headers, payload, padding. */
export { crc32Update as icrcUpdate } from './crc32.js';

/** The ICRC as an unsigned 32-bit number, from the register after the last byte. */
export function icrcValue(register: number): number {
  return ~register >>> 0;
}

/**
 * The ICRC of a packet that lies in one piece.
 * @param register from `PseudoHeader.begin`
 * @param start of the BTH
 * @param end of the padding: where the ICRC is or will be; at least `start + 12`
 */
export function icrcPacket(
  register: number,
  bytes: Uint8Array,
  start: number,
  end: number,
): number {
  const afterBth = icrcBth(register, bytes, start);
  return icrcValue(crc32Update(afterBth, bytes, start + BTH_LENGTH, end));
}

/** The ICRC in a packet, unsigned. */
export function readIcrc(view: DataView, offset: number): number {
  return view.getUint32(offset, true);
}

export function writeIcrc(view: DataView, offset: number, icrc: number): void {
  view.setUint32(offset, icrc, true);
}

function checkGid(name: string, gid: Gid): void {
  if (gid.length !== 16) throw new RangeError(`${name} has ${gid.length} bytes, a GID has 16`);
}

function checkPort(name: string, port: number): void {
  checkInteger(name, port, 0, 0xffff, outOfRange);
}
