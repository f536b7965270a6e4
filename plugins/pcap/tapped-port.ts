/** A packet port that writes what it sends and receives to a capture. */
import {
  type Clock,
  ForwardingPort,
  type Gid,
  LOCAL_MTU_BYTES,
  type PacketPort,
  RX,
  TX,
  TX_SEGMENT,
} from '../../core/spi/index.js';
import type { CaptureFile } from './capture-file.js';
import { Direction } from './pcapng.js';
import { completeFrame, type Flow, headerBytes, ICRC_BYTES } from './roce-frame.js';

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
