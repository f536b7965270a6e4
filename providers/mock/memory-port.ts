/**
 * The packet port on a simulated fabric. Packets are real bytes with a real ICRC, so that
 * corruption in flight is detected as it is on a network.
 */
import { checkOptions } from '../../core/spi/checks/index.js';
import { einval } from '../../core/spi/errors/einval.js';
import {
  type Gid,
  type GidWords,
  gidWords,
  GROUP_BIT,
  ipFromGid,
  isIpv4Gid,
  type NetworkReport,
  type PacketPort,
  type PacketPortHandlers,
  PLACE,
  PORT_COUNTERS,
  RX,
  RxFlags,
  TX,
  TX_SEGMENT,
} from '../../core/spi/index.js';
import { BTH_LENGTH } from '../../core/spi/wire/bth.js';
import { gidsOf, PORT_OPTIONS } from '../hca/common/port-options.js';
import { icrcPacket, readIcrc, writeIcrc } from '../hca/wire/icrc.js';
import type { Fabric } from './fabric.js';
import { copyBytes, Numbered, offsetAt, PathTable, RegionTable } from '../host/port-tables.js';
import { PortFaults } from './port-faults.js';
import { Flow, ICRC_BYTES, MAX_PACKET_BYTES, type WirePacket } from './wire-packet.js';

export interface MemoryPortOptions {
  /** IP addresses in text, 1 to 64; the first one is the default. */
  readonly addresses: readonly string[];
  /** Lowers the fabric's MTU for this port: 256, 512, 1024, 2048 or 4096 bytes. */
  readonly mtuBytes?: number;
}

const RX_PACKETS = 64;
const ARENA_STRIDE = (MAX_PACKET_BYTES + 63) & ~63;
const PLACEMENTS = 1024;
const TX_PACKETS = 256;
const TX_SEGMENTS = 2048;
/** Packets that wait for `receive`, at most; more are dropped and counted, as a NIC does. */
const MAX_WAITING = 4096;
const MAX_HEADER_BYTES = (TX.WORDS - TX.HEADER) * 4;
/** The port of RoCEv2 (IBTA A17.3.1), and the one that packets of ours come from. */
const ROCE_UDP_PORT = 4791;
const SOURCE_PORT = 49152;

/** A group that has been left meanwhile: a number that leads nowhere. */
const NO_GROUP = GROUP_BIT + 0xffff;

/** A group that has been joined, and through which address. */
interface Membership {
  readonly group: string;
  readonly address: string;
}

/** @throws SpiError('EINVAL') naming the option, its value and its limits */
function checkPortOptions(options: MemoryPortOptions): Gid[] {
  checkOptions(options, PORT_OPTIONS, einval);
  return gidsOf(options.addresses);
}

export const MEMORY_PORT_COUNTERS = [
  ...PORT_COUNTERS,
  /** Packets that came faster than they were received. */
  'overruns',
] as const;

export type MemoryPortCounters = Record<(typeof MEMORY_PORT_COUNTERS)[number], number>;

export class MemoryPort implements PacketPort {
  readonly gids: readonly Gid[];
  readonly mtuBytes: number;
  readonly counters: MemoryPortCounters = {
    receivedPackets: 0,
    sentPackets: 0,
    malformed: 0,
    badIcrc: 0,
    recoveredId: 0,
    sendErrors: 0,
    tooLong: 0,
    icmpUnreachable: 0,
    icmpTooBig: 0,
    overruns: 0,
  };
  /** Faults between this port and the fabric. */
  readonly faults: PortFaults;
  readonly rxArena = new Uint8Array(RX_PACKETS * ARENA_STRIDE);
  readonly rxPackets = new Uint32Array(RX_PACKETS * RX.WORDS);
  readonly placements = new Uint32Array(PLACEMENTS * PLACE.WORDS);
  readonly txPackets = new Uint32Array(TX_PACKETS * TX.WORDS);
  readonly txSegments = new Uint32Array(TX_SEGMENTS * TX_SEGMENT.WORDS);

  private readonly txHeaders = new Uint8Array(this.txPackets.buffer);
  private readonly paths: PathTable;
  private readonly flows = new Numbered<Flow>('path');
  private readonly regions = new RegionTable();
  private readonly sources = new WeakMap<
    Flow,
    { readonly words: GidWords; readonly localIndex: number }
  >();
  /** By number: groups that have been joined. */
  private readonly groups = new Numbered<Membership>('group');
  private waiting: WirePacket[] = [];
  private handlers: PacketPortHandlers | undefined;
  private wakePending = false;
  private writablePending = false;
  private alive = false;
  private unplugged = false;
  private closed = false;

  constructor(
    private readonly fabric: Fabric,
    options: MemoryPortOptions,
  ) {
    this.gids = checkPortOptions(options);
    this.mtuBytes = Math.min(options.mtuBytes ?? 4096, fabric.mtuBytes);
    this.paths = new PathTable(this.gids);
    const onReport = (report: NetworkReport): void => {
      if (!this.closed) this.handlers?.onReport(report);
    };
    this.faults = new PortFaults(fabric.clock, this.counters, onReport, fabric.random.seed);
  }

  /** Registrations with the port: both zero when its user has cleaned up. */
  get usage(): { readonly regions: number; readonly paths: number } {
    return { regions: this.regions.size, paths: this.flows.size };
  }

  receive(): number {
    let count = 0;
    let taken = 0;
    for (const packet of this.waiting) {
      if (count === RX_PACKETS) break;
      taken++;
      if (this.take(packet, count)) count++;
      this.fabric.pool.release(packet);
    }
    if (taken > 0) this.waiting = this.waiting.slice(taken);
    if (this.waiting.length > 0) this.wake();
    this.counters.receivedPackets += count;
    return count;
  }

  place(count: number): void {
    if (count > PLACEMENTS) throw new RangeError(`${count} placements, at most ${PLACEMENTS}`);
    this.regions.place(this.placements, count, this.rxArena);
  }

  send(from: number, to: number): number {
    if (to > TX_PACKETS) throw new RangeError(`packets up to ${to}, at most ${TX_PACKETS}`);
    if (this.closed || this.unplugged) return to;
    for (let index = from; index < to; index++) {
      const at = index * TX.WORDS;
      const flow = this.flows.get(this.txPackets[at + TX.PATH] as number);
      if (this.mustWait(flow)) return index;
      const packet = this.assemble(at, flow);
      if (this.faults.any && !this.faults.lets(packet)) {
        this.fabric.pool.release(packet);
        continue;
      }
      this.fabric.transmit(packet);
      this.counters.sentPackets++;
    }
    return to;
  }

  addRegion(memory: ArrayBufferLike, byteOffset: number, byteLength: number): number {
    return this.regions.add(memory, byteOffset, byteLength);
  }

  removeRegion(region: number): void {
    if (!this.closed) this.regions.remove(region);
  }

  addPath(gid: Gid, localGidIndex: number): number {
    return this.paths.add(gid, localGidIndex, () => {
      const local = this.gids[localGidIndex] as Gid;
      return this.flows.add(new Flow(local, Uint8Array.from(gid), SOURCE_PORT, ROCE_UDP_PORT));
    });
  }

  removePath(path: number): void {
    if (!this.closed && this.paths.remove(path)) this.flows.remove(path);
  }

  joinGroup(group: Gid, localGidIndex: number): number {
    const local = this.gids[localGidIndex];
    if (!local) throw new RangeError(`local GID index ${localGidIndex}: ${this.gids.length} exist`);
    const joined = { group: ipFromGid(group), address: ipFromGid(local) };
    this.fabric.joinGroup(joined.group, joined.address);
    return this.groups.add(joined);
  }

  leaveGroup(number: number): void {
    if (this.groups.find(number) === undefined) return;
    const joined = this.groups.remove(number);
    this.fabric.leaveGroup(joined.group, joined.address);
  }

  watch(handlers: PacketPortHandlers): void {
    this.handlers = handlers;
    if (this.waiting.length > 0) this.wake();
  }

  setProcessHold(alive: boolean): void {
    if (this.closed || alive === this.alive) return;
    this.alive = alive;
    this.fabric.holdProcess(alive ? 1 : -1);
  }

  async close(): Promise<void> {
    if (this.closed) return;
    this.setProcessHold(false);
    this.closed = true;
    this.fabric.removePort(this);
    for (const packet of this.waiting.splice(0)) this.fabric.pool.release(packet);
    for (let number = 0; this.groups.size > 0; number++) this.leaveGroup(number);
    this.regions.clear();
    this.handlers = undefined;
  }

  /** Pulls the plug: nothing arrives any more, and what is sent is lost. */
  unplug(): void {
    this.fabric.removePort(this);
    this.unplugged = true;
    for (const packet of this.waiting.splice(0)) this.fabric.pool.release(packet);
  }

  /** @internal for the fabric: a packet has arrived; it belongs to the port now. */
  deliver(packet: WirePacket): void {
    if (this.closed || this.waiting.length === MAX_WAITING) {
      this.counters.overruns++;
      this.fabric.pool.release(packet);
      return;
    }
    this.waiting.push(packet);
    this.wake();
  }

  /** @internal for the fabric: word that nothing is at that address. */
  unreachable(gid: Gid): void {
    this.faults.icmp({ type: 'port-unreachable', gid }, 0);
  }

  private wake(): void {
    if (this.wakePending || !this.handlers) return;
    this.wakePending = true;
    this.fabric.clock.soon(() => {
      this.wakePending = false;
      if (this.waiting.length > 0) this.handlers?.onReadable();
    });
  }

  /** True if the backlog of the link is full; `onWritable` then comes at half of that. */
  private mustWait(flow: Flow): boolean {
    const link = this.fabric.link(flow.from, flow.to);
    const nowUs = this.fabric.clock.now();
    const backlogUs = link.backlogUs(nowUs);
    if (backlogUs < link.options.maxBacklogUs) return false;
    if (!this.writablePending) {
      this.writablePending = true;
      this.fabric.clock.at(nowUs + backlogUs - link.options.maxBacklogUs / 2, () => {
        this.writablePending = false;
        this.handlers?.onWritable();
      });
    }
    return true;
  }

  /** Puts headers, payload, pad and ICRC together. */
  private assemble(at: number, flow: Flow): WirePacket {
    const headerBytes = this.txPackets[at + TX.HEADER_LENGTH] as number;
    if (headerBytes < BTH_LENGTH || headerBytes > MAX_HEADER_BYTES || headerBytes % 4 !== 0) {
      throw new RangeError(`header length ${headerBytes}: 12 to 48, a multiple of 4`);
    }
    const header = (at + TX.HEADER) * 4;
    const padBytes = ((this.txHeaders[header + 1] as number) >> 4) & 3;
    const end = headerBytes + this.payloadBytes(at) + padBytes;
    if (end + ICRC_BYTES > MAX_PACKET_BYTES) {
      throw new RangeError(`a packet of ${end + ICRC_BYTES} bytes, at most ${MAX_PACKET_BYTES}`);
    }
    const packet = this.fabric.pool.take(flow, end + ICRC_BYTES);
    copyBytes(this.txHeaders, header, packet.buffer, 0, headerBytes);
    this.gather(at, packet.buffer, headerBytes);
    packet.buffer.fill(0, end - padBytes, end);
    const register = flow.header.begin(packet.length);
    writeIcrc(packet.view, end, icrcPacket(register, packet.buffer, 0, end));
    return packet;
  }

  /** Adds up the segments of a packet and checks each. */
  private payloadBytes(at: number): number {
    const first = this.txPackets[at + TX.FIRST_SEGMENT] as number;
    const count = this.txPackets[at + TX.SEGMENT_COUNT] as number;
    if (first + count > TX_SEGMENTS) {
      throw new RangeError(`segments ${first} + ${count}, at most ${TX_SEGMENTS}`);
    }
    const words = this.txSegments;
    let bytes = 0;
    for (let i = first; i < first + count; i++) {
      const entry = i * TX_SEGMENT.WORDS;
      const length = words[entry + TX_SEGMENT.LENGTH] as number;
      const offset = offsetAt(words, entry + TX_SEGMENT.OFFSET_LO);
      this.regions.resolve(words[entry + TX_SEGMENT.REGION] as number, offset, length);
      bytes += length;
    }
    return bytes;
  }

  private gather(at: number, target: Uint8Array, start: number): void {
    const first = this.txPackets[at + TX.FIRST_SEGMENT] as number;
    const count = this.txPackets[at + TX.SEGMENT_COUNT] as number;
    const words = this.txSegments;
    let to = start;
    for (let i = first; i < first + count; i++) {
      const entry = i * TX_SEGMENT.WORDS;
      const length = words[entry + TX_SEGMENT.LENGTH] as number;
      const offset = offsetAt(words, entry + TX_SEGMENT.OFFSET_LO);
      const region = words[entry + TX_SEGMENT.REGION] as number;
      copyBytes(this.regions.resolve(region, offset, length), offset, target, to, length);
      to += length;
    }
  }

  /** Checks a packet and shows it as number `index`; false when it is dropped. */
  private take(packet: WirePacket, index: number): boolean {
    const end = packet.length - ICRC_BYTES;
    if (end < BTH_LENGTH || end % 4 !== 0) {
      this.counters.malformed++;
      return false;
    }
    const register = packet.flow.header.begin(packet.length);
    if (icrcPacket(register, packet.buffer, 0, end) !== readIcrc(packet.view, end)) {
      this.counters.badIcrc++;
      return false;
    }
    const offset = index * ARENA_STRIDE;
    copyBytes(packet.buffer, 0, this.rxArena, offset, end);
    this.describe(index * RX.WORDS, offset, end, packet.flow);
    return true;
  }

  private describe(at: number, offset: number, length: number, flow: Flow): void {
    let source = this.sources.get(flow);
    if (!source) {
      const localIndex = this.gids.findIndex((gid) => ipFromGid(gid) === flow.to);
      source = { words: gidWords(flow.source), localIndex };
      this.sources.set(flow, source);
    }
    const words = this.rxPackets;
    words[at + RX.OFFSET] = offset;
    words[at + RX.LENGTH] = length;
    words[at + RX.FLAGS] = isIpv4Gid(flow.source) ? 0 : RxFlags.IPV6;
    words[at + RX.LOCAL_GID_INDEX] = flow.isMulticast ? this.groupOf(flow) : source.localIndex;
    for (let i = 0; i < 4; i++) words[at + RX.SOURCE_GID + i] = source.words[i] as number;
    words[at + RX.SOURCE_PORT] = flow.sourcePort;
  }

  private groupOf(flow: Flow): number {
    const number = this.groups.numberOf(({ group }) => group === flow.to);
    return number < 0 ? NO_GROUP : GROUP_BIT + number;
  }
}
