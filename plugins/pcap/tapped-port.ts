/** A packet port that is listened to: what it receives and sends goes to a capture. */
import {
  type Clock,
  ForwardingPort,
  type Gid,
  type PacketPort,
  RX,
  TX,
  TX_SEGMENT,
} from '../../core/spi/index.js';
import type { CaptureFile } from './capture-file.js';
import { Direction } from './pcapng.js';
import { completeFrame, headerBytes, ICRC_BYTES } from './roce-frame.js';

export interface TappedPortOptions {
  /** Held; let go when the port is closed. */
  readonly file: CaptureFile;
  readonly interfaceId: number;
  readonly clock: Clock;
  /** What the clock's 0 is, in microseconds since 1970. */
  readonly epochUs: number;
  readonly udpPort: number;
}

export class TappedPort extends ForwardingPort {
  private readonly regions = new Map<number, Uint8Array>();
  private readonly paths = new Map<number, { readonly gid: Gid; readonly local: Gid }>();
  private readonly headers: Uint8Array;
  private holdsFile = true;

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

  override addPath(gid: Gid, localGidIndex: number, mtuBytes?: number): number {
    const path = super.addPath(gid, localGidIndex, mtuBytes);
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
    const { file, udpPort } = this.options;
    const offset = word(rxPackets, at + RX.OFFSET);
    const length = word(rxPackets, at + RX.LENGTH);
    const source = gidAt(rxPackets, at + RX.SOURCE_GID);
    const destination = gids[word(rxPackets, at + RX.LOCAL_GID_INDEX)] ?? source;
    const sourcePort = word(rxPackets, at + RX.SOURCE_PORT);
    const start = headerBytes(source);
    const bytes = start + length + ICRC_BYTES;
    const frame = file.reserve(bytes);
    frame.set(rxArena.subarray(offset, offset + length), start);
    completeFrame(frame, { source, destination, sourcePort, destinationPort: udpPort });
    this.commit(bytes, Direction.INBOUND);
  }

  private sent(at: number): void {
    const { txPackets, txSegments, headers } = this;
    const { file, udpPort } = this.options;
    const path = this.paths.get(word(txPackets, at + TX.PATH));
    if (path === undefined) return;
    const { gid: destination, local: source } = path;
    const start = headerBytes(source);
    const header = (at + TX.HEADER) * 4;
    const headerLength = word(txPackets, at + TX.HEADER_LENGTH);
    const pad = ((headers[header + 1] ?? 0) >> 4) & 3;
    const first = word(txPackets, at + TX.FIRST_SEGMENT);
    const end = first + word(txPackets, at + TX.SEGMENT_COUNT);
    let length = headerLength + pad;
    for (let i = first; i < end; i++) {
      length += word(txSegments, i * TX_SEGMENT.WORDS + TX_SEGMENT.LENGTH);
    }
    const bytes = start + length + ICRC_BYTES;
    const frame = file.reserve(bytes);
    frame.set(headers.subarray(header, header + headerLength), start);
    let to = start + headerLength;
    for (let i = first; i < end; i++) {
      const segment = i * TX_SEGMENT.WORDS;
      const size = word(txSegments, segment + TX_SEGMENT.LENGTH);
      const from =
        word(txSegments, segment + TX_SEGMENT.OFFSET_LO) +
        word(txSegments, segment + TX_SEGMENT.OFFSET_HI) * 2 ** 32;
      const region = this.regions.get(word(txSegments, segment + TX_SEGMENT.REGION));
      if (region !== undefined) frame.set(region.subarray(from, from + size), to);
      to += size;
    }
    frame.fill(0, to, to + pad);
    const ports = { sourcePort: udpPort, destinationPort: udpPort };
    completeFrame(frame, { source, destination, ...ports });
    this.commit(bytes, Direction.OUTBOUND);
  }

  private commit(bytes: number, direction: Direction): void {
    const { file, interfaceId, clock, epochUs } = this.options;
    file.commit(bytes, interfaceId, epochUs + clock.now(), direction);
  }
}

/** A GID as four big-endian words holds it. */
function gidAt(words: Uint32Array, at: number): Gid {
  const gid = new Uint8Array(16);
  const view = new DataView(gid.buffer);
  for (let i = 0; i < 4; i++) view.setUint32(i * 4, word(words, at + i));
  return gid;
}

function word(words: Uint32Array, at: number): number {
  return words[at] ?? 0;
}
