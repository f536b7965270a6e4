/** Recordings of real runs: a capture (pcapng) or a flight record, for the same ladder. */
import { gidFromIp, ipFromGid } from '../../../core/spi/wire/address.js';
import { BlockType } from '../../pcap/pcapng.js';
import { type Arrival, emptyRecording, type PacketRow, type Recording } from './recording.js';

const ROCE_UDP_PORT = 4791;
const PROTOCOL_UDP = 17;
const UDP_BYTES = 8;
const BYTE_ORDER_MAGIC = 0x1a2b3c4d;
/** Link types (tcpdump.org/linktypes.html): where the IP header begins. */
const LINK_BYTES: Readonly<Record<number, number>> = {
  1: 14,
  101: 0,
  113: 16,
  228: 0,
  229: 0,
  276: 20,
};
/** Options of an interface and of a packet. */
const IF_TSRESOL = 9;
const EPB_FLAGS = 2;
const INBOUND = 1;
/** A packet is received this long after it was sent at most; else it was another one. */
const PAIRING_US = 1_000_000;

interface Interface {
  readonly linkBytes: number | undefined;
  readonly ticksPerUs: number;
}

interface Captured {
  readonly timeUs: number;
  readonly source: string;
  readonly destination: string;
  readonly bytes: Uint8Array;
  /** 1 inbound, 2 outbound, 0 unknown. */
  readonly direction: number;
}

/** @throws Error in a sentence for bytes that are no capture */
export function recordingOf(file: Uint8Array, title: string): Recording {
  const packets = [...packetsOf(file)];
  if (packets.length === 0) throw new Error(`${title} has no RoCEv2 packets (UDP port 4791).`);
  const nodes = [...new Set(packets.flatMap(({ source, destination }) => [source, destination]))];
  const recording = emptyRecording(title, nodes);
  const startUs = Math.min(...packets.slice(0, 1).map(({ timeUs }) => timeUs));
  const open = new Map<string, PacketRow[]>();
  for (const { timeUs, source, destination, bytes, direction } of packets) {
    const at = timeUs - startUs;
    const key = `${source} ${destination} ${keyOf(bytes)}`;
    const sent = open.get(key) ?? [];
    const arrival: Arrival = { timeUs: at, isCorrupt: false };
    const row = direction === INBOUND ? sent.shift() : undefined;
    if (row && at - row.sentUs < PAIRING_US) {
      row.arrivals.push(arrival);
      row.fate = 'delivered';
      continue;
    }
    const [from, to] = [nodes.indexOf(source), nodes.indexOf(destination)];
    const arrivals = direction === INBOUND ? [arrival] : [];
    const made: PacketRow = { from, to, sentUs: at, bytes, arrivals, fate: 'unknown' };
    recording.packets.push(made);
    if (direction !== INBOUND) open.set(key, [...sent, made]);
    recording.endUs = Math.max(recording.endUs, at);
  }
  return recording;
}

/** Packets with equal keys are one packet, at its sender and at its receiver. */
function keyOf(bytes: Uint8Array): string {
  return `${bytes.length} ${bytes.subarray(0, 40).join()}`;
}

function* packetsOf(file: Uint8Array): Generator<Captured> {
  const view = new DataView(file.buffer, file.byteOffset, file.byteLength);
  if (file.length < 28 || view.getUint32(0, true) !== BlockType.SECTION_HEADER) {
    throw new Error('This is no pcapng file.');
  }
  let isLittle = true;
  let interfaces: Interface[] = [];
  for (let at = 0; at + 12 <= file.length;) {
    const type = view.getUint32(at, isLittle);
    if (type === BlockType.SECTION_HEADER) {
      isLittle = view.getUint32(at + 8, true) === BYTE_ORDER_MAGIC;
      interfaces = [];
    }
    const length = view.getUint32(at + 4, isLittle);
    if (length < 12 || length % 4 !== 0 || at + length > file.length) return;
    const block = new DataView(file.buffer, file.byteOffset + at, length);
    if (type === BlockType.INTERFACE_DESCRIPTION) interfaces.push(interfaceOf(block, isLittle));
    const from = interfaces[type === BlockType.ENHANCED_PACKET ? block.getUint32(8, isLittle) : -1];
    const packet = from && packetOf(block, isLittle, from);
    if (packet) yield packet;
    at += length;
  }
}

function interfaceOf(block: DataView, isLittle: boolean): Interface {
  const linkBytes = LINK_BYTES[block.getUint16(8, isLittle)];
  const resolution = optionOf(block, 16, isLittle, IF_TSRESOL);
  const code = resolution === undefined ? 6 : block.getUint8(resolution);
  const ticks = code & 0x80 ? 2 ** (code & 0x7f) : 10 ** code;
  return { linkBytes, ticksPerUs: ticks / 1e6 };
}

/** Offset of the value of an option. */
function optionOf(
  block: DataView,
  start: number,
  isLittle: boolean,
  code: number,
): number | undefined {
  for (let at = start; at + 4 <= block.byteLength - 4;) {
    const found = block.getUint16(at, isLittle);
    if (found === 0) return undefined;
    if (found === code) return at + 4;
    at += 4 + ((block.getUint16(at + 2, isLittle) + 3) & ~3);
  }
  return undefined;
}

function packetOf(block: DataView, isLittle: boolean, from: Interface): Captured | undefined {
  if (from.linkBytes === undefined) return undefined;
  const ticks = block.getUint32(12, isLittle) * 2 ** 32 + block.getUint32(16, isLittle);
  const captured = Math.min(block.getUint32(20, isLittle), block.byteLength - 32);
  const data = new Uint8Array(block.buffer, block.byteOffset + 28, Math.max(0, captured));
  const flags = optionOf(block, 28 + ((captured + 3) & ~3), isLittle, EPB_FLAGS);
  const direction = flags === undefined ? 0 : block.getUint32(flags, isLittle) & 3;
  const udp = udpOf(data.subarray(from.linkBytes));
  return udp && { ...udp, timeUs: ticks / from.ticksPerUs, direction };
}

/** The payload of a RoCEv2 datagram, and its addresses. */
function udpOf(ip: Uint8Array): Pick<Captured, 'source' | 'destination' | 'bytes'> | undefined {
  const version = (ip[0] ?? 0) >> 4;
  if (version !== 4 && version !== 6) return undefined;
  const headerBytes = version === 4 ? ((ip[0] ?? 0) & 15) * 4 : 40;
  const protocol = ip[version === 4 ? 9 : 6];
  if (protocol !== PROTOCOL_UDP || ip.length < headerBytes + UDP_BYTES) return undefined;
  const port = (ip[headerBytes + 2]! << 8) | ip[headerBytes + 3]!;
  const length = (ip[headerBytes + 4]! << 8) | ip[headerBytes + 5]!;
  if (port !== ROCE_UDP_PORT) return undefined;
  const bytes = ip.slice(headerBytes + UDP_BYTES, headerBytes + length);
  const [at, size] = version === 4 ? [12, 4] : [8, 16];
  const source = addressText(ip.subarray(at, at + size));
  const destination = addressText(ip.subarray(at + size, at + 2 * size));
  return { source, destination, bytes };
}

function addressText(bytes: Uint8Array): string {
  if (bytes.length === 4) return ipFromGid(gidFromIp(bytes.join('.')));
  return ipFromGid(bytes);
}

/** `+1.234 ms REQ sent`: a line of a flight record. */
const FLIGHT_LINE = /^\s*\+(\d+(?:\.\d+)?) ms (.+)$/;

/** @throws Error in a sentence for a text without such lines */
export function flightRecordingOf(text: string, title: string): Recording {
  const recording = emptyRecording(title, ['this side']);
  for (const line of text.split('\n')) {
    const [, ms, what = ''] = FLIGHT_LINE.exec(line) ?? [];
    if (ms === undefined) continue;
    const timeUs = Number(ms) * 1000;
    recording.lines.push({ timeUs, node: 0, kind: 'note', text: what });
    recording.endUs = Math.max(recording.endUs, timeUs);
  }
  if (recording.lines.length === 0) {
    throw new Error(`${title} is neither a pcapng file nor a flight record.`);
  }
  return recording;
}
