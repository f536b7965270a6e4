/** A packet port over a link between threads: docs/spi.md says what each call must do. */
import { copyBytes, NextTurn, offsetAt, PathTable, RegionTable } from 'dapl/provider-kit';
import {
  type Gid,
  gidFromIp,
  newPortCounters,
  type PacketPort,
  type PacketPortHandlers,
  PLACE,
  RX,
  TX,
  TX_SEGMENT,
} from 'dapl/spi';
import { type LinkRings, ringsOf, type ThreadLink } from './link.js';

const MTU_BYTES = 4096;
const HEADER_BYTES = 48;
const PACKETS = 64;
const STRIDE = HEADER_BYTES + MTU_BYTES;
const SEGMENTS = 512;
/** UDP source port of the packets: none is involved here, but packets must state one. */
const SOURCE_PORT = 49152;

export interface ThreadPortOptions {
  readonly link: ThreadLink;
  /** IPv4 address in text of this end, and that of the other end. */
  readonly address: string;
  readonly peer: string;
}

export class ThreadPort implements PacketPort {
  readonly gids: readonly Gid[];
  readonly mtuBytes = MTU_BYTES;
  readonly counters = newPortCounters();
  readonly rxArena = new Uint8Array(PACKETS * STRIDE);
  readonly rxPackets = new Uint32Array(PACKETS * RX.WORDS);
  readonly placements = new Uint32Array(512 * PLACE.WORDS);
  readonly txPackets = new Uint32Array(PACKETS * TX.WORDS);
  readonly txSegments = new Uint32Array(SEGMENTS * TX_SEGMENT.WORDS);
  private readonly headers = new Uint8Array(this.txPackets.buffer);
  private readonly regions = new RegionTable();
  private readonly paths: PathTable;
  private readonly open = new Set<number>();
  private readonly rings: LinkRings;
  private readonly peer: Uint32Array;
  private readonly turn = new NextTurn(() => this.tell());
  private nextPath = 0;
  private handlers: PacketPortHandlers | undefined;
  private closed = false;

  constructor(private readonly options: ThreadPortOptions) {
    const { link, address, peer } = options;
    this.gids = [gidFromIp(address)];
    this.paths = new PathTable(this.gids);
    this.rings = ringsOf(link);
    const gid = new DataView(Uint8Array.from(gidFromIp(peer)).buffer);
    this.peer = Uint32Array.from({ length: 4 }, (_, i) => gid.getUint32(i * 4));
    link.wake.on('message', () => this.tell());
    link.wake.unref();
  }

  receive(): number {
    const { inbound } = this.rings;
    let count = 0;
    let wakes = false;
    while (!this.closed && count < PACKETS) {
      const packet = inbound.peek();
      if (packet === undefined) break;
      this.show(packet, count++);
      wakes = inbound.release(packet) || wakes;
    }
    if (wakes) this.options.link.wake.postMessage(0);
    if (!this.closed && !inbound.isEmpty) this.turn.request();
    this.counters.receivedPackets += count;
    return count;
  }

  place(count: number): void {
    if (count * PLACE.WORDS > this.placements.length) throw new RangeError(`${count} placements`);
    this.regions.place(this.placements, count, this.rxArena);
  }

  send(from: number, to: number): number {
    if (to > PACKETS) throw new RangeError(`packets up to ${to}, at most ${PACKETS}`);
    let wakes = false;
    let next = from;
    for (; next < to && !this.closed; next++) {
      const length = this.lengthOf(next * TX.WORDS);
      const room = this.rings.outbound.reserve(length);
      if (room === undefined) break;
      this.gather(next * TX.WORDS, room);
      wakes = this.rings.outbound.commit(length) || wakes;
      this.counters.sentPackets++;
    }
    if (wakes) this.options.link.wake.postMessage(0);
    return this.closed ? to : next;
  }

  addRegion(memory: ArrayBufferLike, byteOffset: number, byteLength: number): number {
    return this.regions.add(memory, byteOffset, byteLength);
  }

  removeRegion(region: number): void {
    if (!this.closed) this.regions.remove(region);
  }

  addPath(gid: Gid, localGidIndex: number): number {
    const path = this.paths.add(gid, localGidIndex, () => this.nextPath++);
    this.open.add(path);
    return path;
  }

  removePath(path: number): void {
    if (!this.closed && this.paths.remove(path)) this.open.delete(path);
  }

  watch(handlers: PacketPortHandlers): void {
    this.handlers = handlers;
    this.turn.request();
  }

  setProcessHold(alive: boolean): void {
    if (this.closed) return;
    this.turn.setProcessHold(alive);
    if (alive) this.options.link.wake.ref();
    else this.options.link.wake.unref();
  }

  async close(): Promise<void> {
    if (this.closed) return;
    this.closed = true;
    this.handlers = undefined;
    this.turn.cancel();
    this.regions.clear();
    this.options.link.wake.close();
  }

  /** Called from the event loop: packets may have arrived, or there may be room again. */
  private tell(): void {
    this.handlers?.onWritable();
    if (!this.closed && !this.rings.inbound.isEmpty) this.handlers?.onReadable();
  }

  private show(packet: Uint8Array, index: number): void {
    const at = index * RX.WORDS;
    this.rxArena.set(packet, index * STRIDE);
    this.rxPackets.set([index * STRIDE, packet.length, 0, 0, ...this.peer, SOURCE_PORT], at);
  }

  /** @throws RangeError if a packet breaks the contract */
  private lengthOf(at: number): number {
    const { txPackets, txSegments } = this;
    const [path = 0, header = 0, first = 0, count = 0] = txPackets.subarray(at, at + 4);
    if (!this.open.has(path)) throw new RangeError(`no path ${path}`);
    if (header < 12 || header > HEADER_BYTES || header % 4 !== 0) {
      throw new RangeError(`header length ${header}: 12 to 48, a multiple of 4`);
    }
    if (first + count > SEGMENTS) throw new RangeError(`segments up to ${first + count}`);
    let length = header + this.padOf(at);
    for (let i = first; i < first + count; i++) {
      const segment = i * TX_SEGMENT.WORDS;
      const bytes = txSegments[segment + TX_SEGMENT.LENGTH]!;
      const offset = offsetAt(txSegments, segment + TX_SEGMENT.OFFSET_LO);
      this.regions.resolve(txSegments[segment + TX_SEGMENT.REGION]!, offset, bytes);
      length += bytes;
    }
    if (length > STRIDE) throw new RangeError(`a packet of ${length} bytes, at most ${STRIDE}`);
    return length;
  }

  /** BTH PadCnt. */
  private padOf(at: number): number {
    return (this.headers[(at + TX.HEADER) * 4 + 1]! >> 4) & 3;
  }

  private gather(at: number, room: Uint8Array): void {
    const { txPackets, txSegments } = this;
    const [, header = 0, first = 0, count = 0] = txPackets.subarray(at, at + 4);
    copyBytes(this.headers, (at + TX.HEADER) * 4, room, 0, header);
    let to = header;
    for (let i = first; i < first + count; i++) {
      const segment = i * TX_SEGMENT.WORDS;
      const bytes = txSegments[segment + TX_SEGMENT.LENGTH]!;
      const offset = offsetAt(txSegments, segment + TX_SEGMENT.OFFSET_LO);
      const region = this.regions.resolve(txSegments[segment + TX_SEGMENT.REGION]!, offset, bytes);
      copyBytes(region, offset, room, to, bytes);
      to += bytes;
    }
    room.fill(0, to);
  }
}
