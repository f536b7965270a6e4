/**
 * Two PacketPorts joined in memory, for tests and benchmarks of the software HCA: what one sends,
 * the other receives, unless a filter drops, repeats, changes or holds it. Long payload in one
 * segment is taken from its memory as late as a port may: when the peer receives it, and what has
 * changed by then is lost.
 */
import {
  COPIED_PAYLOAD_BYTES,
  type Gid,
  gidEquals,
  gidFromIp,
  gidWords,
  isIpv4Gid,
  type PacketPort,
  type PacketPortCounters,
  type PacketPortHandlers,
  PLACE,
  RX,
  RxFlags,
  TX,
  TX_SEGMENT,
} from '../../core/spi/index.js';

/** Packets for the receiver in place of the one sent: none to lose it, two to repeat it. */
export type PacketFilter = (packet: Uint8Array, from: MemoryPort) => readonly Uint8Array[];

const BURST = 1024;
/** Where all packets of both come from; somebody else's may come from another one. */
export const ROCE_PORT = 4791;
const STRANGER = gidWords(gidFromIp('10.9.9.9'));
const TWO_32 = 4294967296;

interface RegionOfPort {
  readonly bytes: Uint8Array;
}

/** Payload that stays where it is until the packet is received. */
interface LatePayload {
  readonly bytes: Uint8Array;
  /** Bytes before it in the packet. */
  readonly headerLength: number;
}

export class MemoryPort implements PacketPort {
  readonly gids: readonly Gid[];
  readonly counters: PacketPortCounters = {
    receivedPackets: 0,
    sentPackets: 0,
    malformed: 0,
    badIcrc: 0,
    recoveredId: 0,
    sendErrors: 0,
    tooLong: 0,
    icmpUnreachable: 0,
    icmpTooBig: 0,
  };
  /** Two halves: the peer fills one while the other is being read. */
  readonly rxArena: Uint8Array;
  readonly rxPackets = new Uint32Array(BURST * RX.WORDS);
  readonly placements = new Uint32Array(BURST * PLACE.WORDS);
  readonly txPackets = new Uint32Array(BURST * TX.WORDS);
  readonly txSegments = new Uint32Array(2 * BURST * TX_SEGMENT.WORDS);
  readonly paths: (Gid | undefined)[] = [];
  readonly regions: (RegionOfPort | undefined)[] = [];
  peer: MemoryPort | undefined;
  filter: PacketFilter | undefined;
  /** Packets that `send` still takes; Infinity as a rule. */
  sendCredit = Infinity;
  handlers: PacketPortHandlers | undefined;
  readonly localMtuBytes?: number;
  channelMtuBytes?: number;
  /** As of a port that has channels: a test says what they do. */
  listen?: NonNullable<PacketPort['listen']>;
  meet?: NonNullable<PacketPort['meet']>;
  private readonly maxPacketBytes: number;
  /** By the place of the packet in the arena. */
  private readonly late = new Map<number, LatePayload>();
  private readonly waiting = new Uint32Array(3 * BURST);
  private waitingCount = 0;
  private half = 0;
  private used = 0;
  private readonly txBytes: Uint8Array;

  constructor(
    gid: Gid,
    readonly mtuBytes = 4096,
    /** Bytes that wait for `receive`; what comes beyond is lost. */
    readonly bufferBytes = 1 << 20,
    localMtuBytes?: number,
  ) {
    if (localMtuBytes !== undefined) this.localMtuBytes = localMtuBytes;
    this.maxPacketBytes = 1024 + (localMtuBytes ?? 4096);
    this.rxArena = new Uint8Array(2 * bufferBytes);
    this.gids = [gid];
    this.txBytes = new Uint8Array(this.txPackets.buffer);
  }

  get pending(): number {
    return this.waitingCount;
  }

  receive(): number {
    const peer = gidWords((this.peer as MemoryPort).gids[0] as Gid);
    let count = 0;
    for (let i = 0; i < this.waitingCount; i++) {
      if (!this.isAsSent(this.waiting[i * 3] as number)) {
        this.counters.badIcrc += 1;
        continue;
      }
      const at = count++ * RX.WORDS;
      this.rxPackets[at + RX.OFFSET] = this.waiting[i * 3] as number;
      this.rxPackets[at + RX.LENGTH] = this.waiting[i * 3 + 1] as number;
      this.rxPackets[at + RX.FLAGS] = isIpv4Gid(this.gids[0] as Gid) ? 0 : RxFlags.IPV6;
      this.rxPackets[at + RX.LOCAL_GID_INDEX] = 0;
      const from = this.waiting[i * 3 + 2] as number;
      this.rxPackets.set(from === 0 ? STRANGER : peer, at + RX.SOURCE_GID);
      this.rxPackets[at + RX.SOURCE_PORT] = from || ROCE_PORT;
    }
    this.waitingCount = 0;
    this.late.clear();
    this.used = 0;
    this.half ^= 1;
    this.counters.receivedPackets += count;
    return count;
  }

  place(count: number): void {
    for (let i = 0; i < count; i++) {
      const at = i * PLACE.WORDS;
      const source = this.placements[at + PLACE.SOURCE] as number;
      const length = this.placements[at + PLACE.LENGTH] as number;
      const region = this.region(this.placements[at + PLACE.REGION] as number);
      const offset = this.offset(this.placements, at + PLACE.OFFSET_LO);
      if (offset + length > region.bytes.length) throw new Error('placement outside the region');
      region.bytes.set(this.rxArena.subarray(source, source + length), offset);
    }
  }

  send(from: number, to: number): number {
    for (let i = from; i < to; i++) {
      if (this.sendCredit <= 0) return i;
      this.sendCredit -= 1;
      this.sendPacket(i * TX.WORDS);
      this.counters.sentPackets += 1;
    }
    return to;
  }

  /** What somebody makes up: from the peer's address and a port, or from a stranger's (0). */
  inject(packet: Uint8Array, fromPort = ROCE_PORT): void {
    this.deliver(packet, fromPort);
  }

  addRegion(memory: ArrayBufferLike, byteOffset: number, byteLength: number): number {
    this.regions.push({ bytes: new Uint8Array(memory, byteOffset, byteLength) });
    return this.regions.length - 1;
  }

  removeRegion(region: number): void {
    if (!this.regions[region]) throw new Error(`region ${region} is not there`);
    this.regions[region] = undefined;
  }

  addPath(gid: Gid): number {
    if (gid[0] === 0xff) throw new RangeError('no local address reaches a multicast group');
    const found = this.paths.findIndex((path) => path && gidEquals(path, gid));
    if (found >= 0) return found;
    this.paths.push(gid);
    return this.paths.length - 1;
  }

  removePath(_path: number): void {}

  watch(handlers: PacketPortHandlers): void {
    this.handlers = handlers;
  }

  setProcessHold(_alive: boolean): void {}
  async close(): Promise<void> {}

  private sendPacket(at: number): void {
    const peer = this.peer as MemoryPort;
    const destination = this.paths[this.txPackets[at + TX.PATH] as number];
    if (!destination) throw new Error('packet to no path');
    if (!gidEquals(destination, peer.gids[0] as Gid)) return;
    const late = this.latePayload(at);
    if (this.filter) {
      const scratch = new Uint8Array(this.maxPacketBytes);
      const packet = scratch.subarray(0, this.assemble(at, scratch, 0));
      for (const one of this.filter(packet, this)) {
        peer.deliver(one, ROCE_PORT, one === packet ? late : undefined);
      }
      return;
    }
    if (peer.waitingCount === BURST) return;
    if (peer.used + this.maxPacketBytes > peer.bufferBytes) return;
    const start = peer.half * peer.bufferBytes + peer.used;
    if (late) peer.late.set(start, late);
    peer.note(start, this.assemble(at, peer.rxArena, start));
  }

  private latePayload(at: number): LatePayload | undefined {
    if ((this.txPackets[at + TX.SEGMENT_COUNT] as number) !== 1) return undefined;
    const word = (this.txPackets[at + TX.FIRST_SEGMENT] as number) * TX_SEGMENT.WORDS;
    const length = this.txSegments[word + TX_SEGMENT.LENGTH] as number;
    if (length <= COPIED_PAYLOAD_BYTES) return undefined;
    const { bytes } = this.region(this.txSegments[word + TX_SEGMENT.REGION] as number);
    const offset = this.offset(this.txSegments, word + TX_SEGMENT.OFFSET_LO);
    const headerLength = this.txPackets[at + TX.HEADER_LENGTH] as number;
    return { bytes: bytes.subarray(offset, offset + length), headerLength };
  }

  /** Whether what is taken from memory only now is what it was. */
  private isAsSent(start: number): boolean {
    const late = this.late.get(start);
    if (!late) return true;
    const from = start + late.headerLength;
    return Buffer.compare(late.bytes, this.rxArena.subarray(from, from + late.bytes.length)) === 0;
  }

  private deliver(packet: Uint8Array, fromPort: number, late?: LatePayload): void {
    if (this.waitingCount === BURST || this.used + packet.length > this.bufferBytes) return;
    const start = this.half * this.bufferBytes + this.used;
    this.rxArena.set(packet, start);
    if (late) this.late.set(start, late);
    this.note(start, packet.length, fromPort);
  }

  private note(start: number, length: number, fromPort = ROCE_PORT): void {
    this.waiting[this.waitingCount * 3] = start;
    this.waiting[this.waitingCount * 3 + 1] = length;
    this.waiting[this.waitingCount * 3 + 2] = fromPort;
    this.waitingCount += 1;
    this.used += (length + 15) & ~15;
  }

  /** Puts headers, payload and pad together; the length. */
  private assemble(at: number, target: Uint8Array, start: number): number {
    const headerLength = this.txPackets[at + TX.HEADER_LENGTH] as number;
    const header = (at + TX.HEADER) * 4;
    for (let i = 0; i < headerLength; i++) target[start + i] = this.txBytes[header + i] as number;
    let end = start + headerLength;
    const first = this.txPackets[at + TX.FIRST_SEGMENT] as number;
    const count = this.txPackets[at + TX.SEGMENT_COUNT] as number;
    for (let i = first; i < first + count; i++) end += this.copySegment(i, target, end);
    const pad = ((this.txBytes[header + 1] as number) >>> 4) & 3;
    target.fill(0, end, end + pad);
    return end + pad - start;
  }

  private copySegment(segment: number, target: Uint8Array, at: number): number {
    const word = segment * TX_SEGMENT.WORDS;
    const { bytes } = this.region(this.txSegments[word + TX_SEGMENT.REGION] as number);
    const offset = this.offset(this.txSegments, word + TX_SEGMENT.OFFSET_LO);
    const length = this.txSegments[word + TX_SEGMENT.LENGTH] as number;
    if (offset + length > bytes.length) throw new Error('segment outside the region');
    if (length <= 64) for (let i = 0; i < length; i++) target[at + i] = bytes[offset + i] as number;
    else target.set(bytes.subarray(offset, offset + length), at);
    return length;
  }

  private region(number: number): RegionOfPort {
    const region = this.regions[number];
    if (!region) throw new Error(`region ${number} is not registered`);
    return region;
  }

  private offset(words: Uint32Array, at: number): number {
    return (words[at] as number) + (words[at + 1] as number) * TWO_32;
  }
}

/** Joins two ports. */
export function joinPorts(a: MemoryPort, b: MemoryPort): void {
  a.peer = b;
  b.peer = a;
}
