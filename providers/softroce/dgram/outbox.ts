/** The sending half of the dgram port: packets put together and handed to the sockets. */
import type { Socket } from 'node:dgram';
import { type Gid, TX, TX_SEGMENT } from '../../../core/spi/index.js';
import { Numbered, type RegionTable, copyBytes, offsetAt } from '../../host/index.js';
import { scopedAddress } from './socket.js';
import { BTH_BYTES, FlowIcrc, ICRC_BYTES } from './flow-icrc.js';
import { PORT_CAPACITY, type SocketPortCounters } from '../port/port-options.js';

/** Datagrams handed to the system and not yet taken, at most. */
const MAX_IN_FLIGHT = 256;
const MAX_DATAGRAM_BYTES = 65507;

interface Path {
  readonly gid: Gid;
  readonly address: string;
  readonly localIndex: number;
  readonly flow: FlowIcrc;
}

export interface OutboxEvents {
  onWritable(): void;
  /** The system refused a packet. */
  onRefused(gid: Gid, code: string, datagramBytes: number): void;
}

export class DgramOutbox {
  private readonly headers: Uint8Array;
  private readonly paths = new Numbered<Path>('path');
  private inFlight = 0;
  private refused = false;

  constructor(
    private readonly sockets: readonly Socket[],
    private readonly udpPort: number,
    private readonly packets: Uint32Array,
    private readonly segments: Uint32Array,
    private readonly regions: RegionTable,
    private readonly counters: SocketPortCounters,
    private readonly events: OutboxEvents,
  ) {
    this.headers = new Uint8Array(packets.buffer);
  }

  addPath(gid: Gid, local: Gid, localIndex: number): number {
    const port = this.udpPort;
    const flow = new FlowIcrc({ gid: local, port }, { gid, port });
    return this.paths.add({ gid, address: scopedAddress(gid, local), localIndex, flow });
  }

  removePath(path: number): void {
    this.paths.remove(path);
  }

  /** @returns the index of the first packet not taken */
  send(from: number, to: number): number {
    for (let i = from; i < to; i++) {
      if (this.inFlight >= MAX_IN_FLIGHT) {
        this.refused = true;
        return i;
      }
      this.sendPacket(i);
    }
    return to;
  }

  private sendPacket(index: number): void {
    const at = index * TX.WORDS;
    const path = this.paths.get(word(this.packets, at + TX.PATH));
    const packet = this.assemble(at);
    if (!packet) {
      throw new RangeError(`packet ${index} is not valid: header length, segments or size`);
    }
    const end = packet.length - ICRC_BYTES;
    new DataView(packet.buffer).setUint32(end, path.flow.icrc(packet.subarray(0, end)), true);
    this.inFlight++;
    this.sockets[path.localIndex]?.send(packet, this.udpPort, path.address, (error) => {
      this.onSent(error, path.gid, packet.length);
    });
  }

  /** Headers, payload and pad, with room for the ICRC; undefined when the descriptor is wrong. */
  private assemble(at: number): Uint8Array | undefined {
    const headerBytes = word(this.packets, at + TX.HEADER_LENGTH);
    const first = word(this.packets, at + TX.FIRST_SEGMENT);
    const end = first + word(this.packets, at + TX.SEGMENT_COUNT);
    if (headerBytes < BTH_BYTES || headerBytes > 48 || headerBytes % 4 !== 0) return undefined;
    if (end > PORT_CAPACITY.TX_SEGMENTS) return undefined;
    const header = (at + TX.HEADER) * 4;
    let bytes = headerBytes + (((this.headers[header + 1] ?? 0) >> 4) & 3) + ICRC_BYTES;
    for (let i = first; i < end; i++) {
      bytes += word(this.segments, i * TX_SEGMENT.WORDS + TX_SEGMENT.LENGTH);
    }
    if (bytes > MAX_DATAGRAM_BYTES) return undefined;
    const packet = new Uint8Array(bytes);
    packet.set(this.headers.subarray(header, header + headerBytes));
    this.gather(packet, headerBytes, first, end);
    return packet;
  }

  private gather(packet: Uint8Array, start: number, first: number, end: number): void {
    const { segments } = this;
    let to = start;
    for (let i = first; i < end; i++) {
      const at = i * TX_SEGMENT.WORDS;
      const length = word(segments, at + TX_SEGMENT.LENGTH);
      const offset = offsetAt(segments, at + TX_SEGMENT.OFFSET_LO);
      const region = word(segments, at + TX_SEGMENT.REGION);
      copyBytes(this.regions.resolve(region, offset, length), offset, packet, to, length);
      to += length;
    }
  }

  private onSent(error: Error | null, gid: Gid, datagramBytes: number): void {
    this.inFlight--;
    if (!error) {
      this.counters.sentPackets++;
      this.counters.sentTrains++;
    } else {
      this.counters.sendErrors++;
      const { code } = error as { code?: string };
      if (code !== undefined) this.events.onRefused(gid, code, datagramBytes);
    }
    if (this.refused && this.inFlight <= MAX_IN_FLIGHT / 2) {
      this.refused = false;
      this.events.onWritable();
    }
  }
}

function word(words: Uint32Array, at: number): number {
  return words[at] ?? 0;
}
