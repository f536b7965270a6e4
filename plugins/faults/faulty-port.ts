/**
 * A packet port between a device and its network that loses, delays, repeats or corrupts packets as
 * rules say. Delayed and repeated packets are sent from a copy. On the receiving side they are
 * kept, and a later `receive` delivers them.
 */
import {
  type Clock,
  ForwardingPort,
  type Gid,
  GROUP_BIT,
  gidFromWords,
  ipFromGid,
  type PacketPort,
  type PacketPortHandlers,
  RX,
  Timer,
  type Timers,
} from '../../core/spi/index.js';
import type { FaultScript } from './grammar/fault-script.js';
import {
  type PacketAction,
  type PacketMatch,
  packetView,
  type PacketView,
} from './grammar/packet-faults.js';
import { LeavingPackets } from './leaving-packets.js';

export interface PortTimers {
  readonly timers: Timers;
  readonly clock: Clock;
}

/** A received packet that is kept. */
interface Kept {
  readonly descriptor: Uint32Array;
  readonly bytes: Uint8Array;
}

/**
 * Room for the ICRC in packets shown to rules, filled with zeros: a port cuts it off, or has not
 * computed it yet.
 */
const ICRC_BYTES = 4;
/** Alignment of packets that are delivered again. */
const ALIGNMENT = 64;

export class FaultyPort extends ForwardingPort {
  declare readonly joinGroup?: NonNullable<PacketPort['joinGroup']>;
  declare readonly leaveGroup?: NonNullable<PacketPort['leaveGroup']>;
  private readonly leaving: LeavingPackets;
  private readonly groups = new Map<number, string>();
  private readonly local: readonly string[];
  /** Decisions on packets that were offered and not accepted yet: a rule is asked once for each. */
  private readonly decided: (PacketAction | undefined)[] = [];
  /** Received packets that are due to be delivered. */
  private readonly due: Kept[] = [];
  private readonly waiting = new Set<Timer>();
  private scratch = new Uint8Array(0);
  private handlers: PacketPortHandlers | undefined = undefined;
  private given: PortTimers | undefined = undefined;

  constructor(
    port: PacketPort,
    private readonly rules: FaultScript<PacketView, PacketMatch, PacketAction>,
  ) {
    super(port, { channels: false });
    this.leaving = new LeavingPackets(port);
    this.local = port.gids.map(ipFromGid);
    const { joinGroup, leaveGroup } = this;
    if (joinGroup === undefined || leaveGroup === undefined) return;
    this.joinGroup = (group, localGidIndex) => {
      const number = joinGroup(group, localGidIndex);
      this.groups.set(number, ipFromGid(group));
      return number;
    };
    this.leaveGroup = (number) => {
      leaveGroup(number);
      this.groups.delete(number);
    };
  }

  /** Sets the timers, before the first packet is sent or received. */
  useTimers(given: PortTimers): void {
    this.given = given;
  }

  override watch(handlers: PacketPortHandlers): void {
    this.handlers = handlers;
    super.watch(handlers);
  }

  override addRegion(memory: ArrayBufferLike, byteOffset: number, byteLength: number): number {
    const region = super.addRegion(memory, byteOffset, byteLength);
    this.leaving.regions.set(region, new Uint8Array(memory, byteOffset, byteLength));
    return region;
  }

  override removeRegion(region: number): void {
    super.removeRegion(region);
    this.leaving.regions.delete(region);
  }

  override addPath(gid: Gid, localGidIndex: number): number {
    const path = super.addPath(gid, localGidIndex);
    const from = this.local[localGidIndex] ?? '';
    this.leaving.paths.set(path, { from, to: ipFromGid(gid) });
    return path;
  }

  override send(from: number, to: number): number {
    if (!this.rules.any && this.decided.length === 0) return super.send(from, to);
    const actions: (PacketAction | undefined)[] = [];
    for (let i = from; i < to; i++) {
      actions.push(this.decided.length > 0 ? this.decided.shift() : this.decideLeaving(i));
    }
    const end = this.sendAsDecided(from, actions);
    this.decided.push(...actions.slice(end - from));
    return end;
  }

  override receive(): number {
    if (this.due.length > 0) return this.showDue();
    if (!this.rules.any) return super.receive();
    // All packets of a burst may be lost although more are waiting.
    let count: number;
    let kept: number;
    do {
      count = super.receive();
      kept = this.keepOf(count);
    } while (count > 0 && kept === 0);
    return kept;
  }

  override async close(): Promise<void> {
    for (const timer of this.waiting) this.given?.timers.stop(timer);
    this.waiting.clear();
    this.due.length = 0;
    this.leaving.end();
    await super.close();
  }

  private decideLeaving(index: number): PacketAction | undefined {
    const packet = this.leaving.read(index);
    return packet && this.decide(packet.bytes, packet.from, packet.to);
  }

  /** Sends packets as decided. Runs of packets without a fault are sent as they were offered. */
  private sendAsDecided(from: number, actions: readonly (PacketAction | undefined)[]): number {
    const to = from + actions.length;
    let next = from;
    for (let i = from; i < to; i++) {
      const action = actions[i - from];
      if (action === undefined) continue;
      if (next < i) next = super.send(next, i);
      if (next < i) return next;
      if (action.type === 'duplicate' && super.send(i, i + 1) === i) return i;
      this.befallLeaving(i, action);
      next = i + 1;
    }
    return next < to ? super.send(next, to) : to;
  }

  /**
   * Applies an action to a packet to be sent. A peer drops a packet with a wrong ICRC, so a
   * corrupted packet is not sent at all.
   */
  private befallLeaving(index: number, action: PacketAction): void {
    const delays = delaysOf(action);
    if (delays.length === 0) return;
    const copy = this.leaving.copy(index);
    delays.forEach((delayUs, i) => {
      this.after(delayUs, () => this.leaving.send(copy, i === delays.length - 1));
    });
  }

  /** Removes received packets that have a fault; returns the number that is left. */
  private keepOf(count: number): number {
    const { rxPackets, counters } = this;
    let kept = 0;
    for (let i = 0; i < count; i++) {
      const at = i * RX.WORDS;
      const action = this.decideReceived(at);
      if (action !== undefined) this.keepFor(action, at);
      if (action?.type === 'corrupt') counters.badIcrc++;
      if (action !== undefined && action.type !== 'duplicate') continue;
      rxPackets.copyWithin(kept * RX.WORDS, at, at + RX.WORDS);
      kept++;
    }
    return kept;
  }

  private decideReceived(at: number): PacketAction | undefined {
    const { rxPackets, rxArena, local } = this;
    const [offset = 0, length = 0] = rxPackets.subarray(at + RX.OFFSET, at + RX.OFFSET + 2);
    const index = rxPackets[at + RX.LOCAL_GID_INDEX]!;
    const isOfGroup = (index & GROUP_BIT) !== 0;
    const to = isOfGroup ? this.groups.get((index & ~GROUP_BIT) >>> 0) : local[index];
    const from = ipFromGid(gidFromWords(rxPackets, at + RX.SOURCE_GID));
    return this.decide(rxArena.subarray(offset, offset + length), from, to ?? '');
  }

  private decide(packet: Uint8Array, from: string, to: string): PacketAction | undefined {
    const bytes = packet.length + ICRC_BYTES;
    if (this.scratch.length < bytes) this.scratch = new Uint8Array(bytes);
    const shown = this.scratch.subarray(0, bytes);
    shown.set(packet);
    shown.fill(0, packet.length);
    return this.rules.decide(packetView(new DataView(shown.buffer, 0, bytes), shown, from, to));
  }

  private keepFor(action: PacketAction, at: number): void {
    const { rxPackets, rxArena } = this;
    const delays = delaysOf(action);
    if (delays.length === 0) return;
    const descriptor = rxPackets.slice(at, at + RX.WORDS);
    const offset = descriptor[RX.OFFSET]!;
    const kept = { descriptor, bytes: rxArena.slice(offset, offset + descriptor[RX.LENGTH]!) };
    for (const delayUs of delays) {
      this.after(delayUs, () => {
        this.due.push(kept);
        this.handlers?.onReadable();
      });
    }
  }

  /**
   * Delivers packets that are due. The arena held the packets of the last `receive`, so it is free.
   */
  private showDue(): number {
    const { rxPackets, rxArena, due } = this;
    let count = 0;
    let offset = 0;
    for (let next = due[0]; next !== undefined; next = due[0]) {
      const { descriptor, bytes } = next;
      const hasRoom =
        (count + 1) * RX.WORDS <= rxPackets.length && offset + bytes.length <= rxArena.length;
      if (!hasRoom) break;
      due.shift();
      rxArena.set(bytes, offset);
      rxPackets.set(descriptor, count * RX.WORDS);
      rxPackets[count * RX.WORDS + RX.OFFSET] = offset;
      offset += Math.ceil(bytes.length / ALIGNMENT) * ALIGNMENT;
      count++;
    }
    return count;
  }

  private after(delayUs: number, task: () => void): void {
    const { given, waiting } = this;
    if (given === undefined) return;
    const timer = new Timer(() => {
      waiting.delete(timer);
      task();
    });
    waiting.add(timer);
    given.timers.start(timer, given.clock.now() + delayUs, true);
  }
}

/** Delays of the copies that a packet arrives as, in microseconds. */
function delaysOf(action: PacketAction): readonly number[] {
  if (action.type === 'delay') return [action.byUs];
  return action.type === 'duplicate' ? action.afterUs : [];
}
