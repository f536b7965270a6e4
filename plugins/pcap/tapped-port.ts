/**
 * A packet port that writes its packets to a capture. The port does not pass on IP and UDP headers
 * or the ICRC, so they are rebuilt. The IPv4 identification is 0 and the hop limit 64, although the
 * wire may have had other values; the ICRC matches the rebuilt headers.
 */
import {
  type Clock,
  ForwardingPort,
  type Gid,
  isIpv4Gid,
  LOCAL_MTU_BYTES,
  type PacketPort,
  RX,
  TX,
  TX_SEGMENT,
} from '../../core/spi/index.js';
import type { CaptureFile } from './capture-file.js';
import { Direction } from './pcapng.js';
import { crc32 } from 'node:zlib';

/** The largest value of the length field of an IP header. */
const MAX_IP_BYTES = 65_535;
/**
 * Bytes captured of a longer packet: headers and 56 KiB, the most that two of our devices on
 * loopback send.
 */
const SHOWN_BYTES = 48 + LOCAL_MTU_BYTES;

export interface TappedPortOptions {
  /** The capture file, held until the port is closed. */
  readonly file: CaptureFile;
  readonly interfaceId: number;
  readonly clock: Clock;
  /** Time at which the clock shows 0, in microseconds since 1970. */
  readonly epochUs: number;
  readonly udpPort: number;
}

export class TappedPort extends ForwardingPort {
  private readonly regions = new Map<number, Uint8Array>();
  private readonly paths = new Map<number, { readonly gid: Gid; readonly local: Gid }>();
  private readonly headers: Uint8Array;
  private holdsFile = true;
  /** Buffer for packets that do not lie in the arena; allocated for the first of them. */
  private scratch: Uint8Array | undefined;
  private scratchRegion: number | undefined;

  constructor(
    port: PacketPort,
    private readonly options: TappedPortOptions,
  ) {
    super(port);
    this.headers = new Uint8Array(port.txPackets.buffer, port.txPackets.byteOffset);
  }

  override receive(): number {
    const count = super.receive();
    for (let i = 0; i < count; i++) this.received(i * RX.WORDS);
    return count;
  }

  override send(from: number, to: number): number {
    const end = super.send(from, to);
    for (let i = from; i < end; i++) this.sent(i * TX.WORDS);
    return end;
  }

  override addRegion(memory: ArrayBufferLike, byteOffset: number, byteLength: number): number {
    const region = super.addRegion(memory, byteOffset, byteLength);
    this.regions.set(region, new Uint8Array(memory, byteOffset, byteLength));
    return region;
  }

  override removeRegion(region: number): void {
    super.removeRegion(region);
    this.regions.delete(region);
  }

  override addPath(gid: Gid, localGidIndex: number, mtuBytes?: number, qpn?: number): number {
    const path = super.addPath(gid, localGidIndex, mtuBytes, qpn);
    this.paths.set(path, { gid: gid.slice(), local: this.gids[localGidIndex] ?? gid });
    return path;
  }

  override async close(): Promise<void> {
    try {
      await super.close();
    } finally {
      if (this.holdsFile) this.options.file.release();
      this.holdsFile = false;
    }
  }

  private received(at: number): void {
    const { rxPackets, rxArena, gids } = this;
    const offset = word(rxPackets, at + RX.OFFSET);
    const body = word(rxPackets, at + RX.BODY);
    const source = gidAt(rxPackets, at + RX.SOURCE_GID);
    const destination = gids[word(rxPackets, at + RX.LOCAL_GID_INDEX)] ?? source;
    const sourcePort = word(rxPackets, at + RX.SOURCE_PORT);
    const flow = { source, destination, sourcePort, destinationPort: this.options.udpPort };
    const length = word(rxPackets, at + RX.LENGTH);
    this.write(flow, length, Direction.INBOUND, (packet) => {
      if (body === 0) packet.set(rxArena.subarray(offset, offset + packet.length));
      else packet.set(this.fetch(body, packet.length, length - padOf(rxArena, offset)));
    });
  }

  /**
   * The beginning of a packet that does not lie in the arena.
   * @param end of its payload
   */
  private fetch(body: number, length: number, end: number): Uint8Array {
    const { placements } = this;
    this.scratch ??= new Uint8Array(SHOWN_BYTES);
    this.scratchRegion ??= super.addRegion(this.scratch.buffer, 0, SHOWN_BYTES);
    // The port holds no pad bytes: a packet that is captured whole gets zeros.
    const there = Math.min(length, end);
    this.scratch.fill(0, there, length);
    placements.set([body, there, this.scratchRegion, 0, 0]);
    super.place(1);
    return this.scratch.subarray(0, length);
  }

  private sent(at: number): void {
    const { txPackets, txSegments, headers } = this;
    const { udpPort } = this.options;
    const path = this.paths.get(word(txPackets, at + TX.PATH));
    if (path === undefined) return;
    const { gid: destination, local: source } = path;
    const header = (at + TX.HEADER) * 4;
    const headerLength = word(txPackets, at + TX.HEADER_LENGTH);
    const first = word(txPackets, at + TX.FIRST_SEGMENT);
    const end = first + word(txPackets, at + TX.SEGMENT_COUNT);
    let length = headerLength + padOf(headers, header);
    for (let i = first; i < end; i++) {
      length += word(txSegments, i * TX_SEGMENT.WORDS + TX_SEGMENT.LENGTH);
    }
    const flow = { source, destination, sourcePort: udpPort, destinationPort: udpPort };
    this.write(flow, length, Direction.OUTBOUND, (packet) => {
      packet.set(headers.subarray(header, header + headerLength));
      let to = headerLength;
      for (let i = first; i < end && to < packet.length; i++) {
        const segment = i * TX_SEGMENT.WORDS;
        const from =
          word(txSegments, segment + TX_SEGMENT.OFFSET_LO) +
          word(txSegments, segment + TX_SEGMENT.OFFSET_HI) * 2 ** 32;
        const rest = packet.length - to;
        const size = Math.min(word(txSegments, segment + TX_SEGMENT.LENGTH), rest);
        const region = this.regions.get(word(txSegments, segment + TX_SEGMENT.REGION));
        if (region !== undefined) packet.set(region.subarray(from, from + size), to);
        to += size;
      }
      packet.fill(0, to);
    });
  }

  /**
   * Writes a packet, given its length from BTH to pad. Of a packet that is too long for an IP
   * header, the beginning is written, with a comment that says so.
   */
  private write(
    flow: Flow,
    length: number,
    direction: Direction,
    fill: (packet: Uint8Array) => void,
  ): void {
    const { file, interfaceId, clock, epochUs } = this.options;
    const start = headerBytes(flow.source);
    const isWhole = start + length + ICRC_BYTES <= MAX_IP_BYTES;
    const comment = isWhole ? '' : `the beginning of a packet of ${length} bytes from BTH to pad`;
    const shown = isWhole ? length : SHOWN_BYTES;
    const bytes = start + shown + ICRC_BYTES;
    const frame = file.reserve(bytes, comment);
    fill(frame.subarray(start, start + shown));
    completeFrame(frame, flow);
    file.commit(bytes, interfaceId, epochUs + clock.now(), direction, comment);
  }
}

/** PadCnt of the BTH at an offset (IBTA 9.2.6). */
function padOf(bytes: Uint8Array, offset: number): number {
  return ((bytes[offset + 1] ?? 0) >> 4) & 3;
}

/** Reads a GID from four big-endian words. */
function gidAt(words: Uint32Array, at: number): Gid {
  const gid = new Uint8Array(16);
  const view = new DataView(gid.buffer);
  for (let i = 0; i < 4; i++) view.setUint32(i * 4, word(words, at + i));
  return gid;
}

function word(words: Uint32Array, at: number): number {
  return words[at] ?? 0;
}

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
