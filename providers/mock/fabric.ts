/**
 * A network in one process: ports by address, a link for each direction between two of them, faults
 * by chance and by script, and virtual time. One seed decides everything that happens.
 */
import {
  ANYTHING,
  checkOptions,
  checkValue,
  integer,
  kindOf,
  LIST,
  numberFrom,
  OBJECT,
  oneOf,
  optional,
  outOfRange,
  showAs,
  within,
} from '../../core/spi/checks/index.js';
import { type Gid, SpiError, ipFromGid } from '../../core/spi/index.js';
import { FaultScript, refuseUnhit } from '../../plugins/faults/grammar/fault-script.js';
import {
  ADDRESS,
  PACKET_FAULTS,
  type PacketAction,
  type PacketMatch,
  type PacketView,
} from '../../plugins/faults/grammar/packet-faults.js';
import { PORT_OPTIONS } from '../hca/common/port-options.js';
import { Bottleneck, type BottleneckOptions } from './bottleneck.js';
import { checkLink, defaultLink, Link, type LinkOptions, OVERHEAD_BYTES } from './link.js';
import { MemoryPort, type MemoryPortOptions } from './memory-port.js';
import type { MockNode } from './node.js';
import { SeededRandom } from '../../plugins/faults/grammar/seeded-random.js';
import { Runner, type RunOptions } from './runner.js';
import { GroupSystem } from './group-system.js';
import type { SteeredSocket } from './steered-address.js';
import { VirtualClock } from './virtual-clock.js';
import { PacketPool, type TappedPacket, viewOf, type WirePacket } from './wire-packet.js';

export interface FabricOptions {
  /** An integer from 0 to 2^53 - 1; default 1. */
  readonly seed?: number;
  /** Every link, unless `setLink` says otherwise. */
  readonly link?: Partial<LinkOptions>;
  /** Largest RoCE path MTU in bytes: 256, 512, 1024 (default), 2048 or 4096. */
  readonly mtuBytes?: number;
  /**
   * Time moves by itself: `true` as fast as the program keeps up, 'paced' no faster than real time.
   * Without it time stands still until `run` is called.
   */
  readonly autoRun?: boolean | 'paced';
  /** The clock's first reading in microseconds, 0 (default) to 2^53 - 1. */
  readonly startUs?: number;
}

const OPTIONS = {
  seed: optional(integer(0, Number.MAX_SAFE_INTEGER)),
  // `setLink` looks at it.
  link: ANYTHING,
  mtuBytes: PORT_OPTIONS.mtuBytes,
  autoRun: optional(oneOf([true, false, 'paced'] as const)),
  startUs: optional(numberFrom(0, Number.MAX_SAFE_INTEGER)),
};

/** Addresses in text; an address left out means all. */
export interface LinkSelection {
  readonly from?: string;
  readonly to?: string;
}

const SELECTION = { from: optional(ADDRESS), to: optional(ADDRESS) };
const ADDRESSES = kindOf<readonly string[]>(
  'a list of IP addresses in their usual text',
  (list) => LIST.accepts(list) && list.every((each) => ADDRESS.accepts(each)),
);
const DIRECTION = oneOf(['both', 'out'] as const);

/** Packets by outcome. Each packet sent is delivered or counted under one of the losses. */
export interface FabricCounters {
  sent: number;
  delivered: number;
  lost: number;
  duplicated: number;
  reordered: number;
  corrupted: number;
  /** Dropped by a partition, by a rule of the fault script, by a full queue of a bottleneck. */
  partitioned: number;
  faulted: number;
  overflowed: number;
  /** Lost for lack of a receiver. */
  undeliverable: number;
}

/** Shown every packet where it enters the wire and where it leaves it. */
export type FabricTap = (event: 'sent' | 'delivered', packet: TappedPacket, nowUs: number) => void;

/** Why a packet does not arrive: one of the counters. */
export type LossReason = 'lost' | 'partitioned' | 'faulted' | 'overflowed' | 'undeliverable';

/** Owner of an address: a port, or sockets of several processes that share it. */
export interface PacketReceiver {
  deliver(packet: WirePacket): void;
  unreachable(gid: Gid): void;
  /** Called for a shared address: the port reads no more. */
  notReadBy?(port: MemoryPort): void;
}

/** Delay between a packet and the report that its destination does not exist. */
const UNREACHABLE_AFTER_US = 100;

let fabricsMade = 0;

export class Fabric {
  static {
    showAs(this, 'Fabric', ({ id, autoRun, receivers, clock }) => {
      return { id, autoRun, ports: receivers.size, nowUs: clock.now() };
    });
  }

  /** Tells the fabrics of a process apart. */
  readonly id = ++fabricsMade;
  readonly clock: VirtualClock;
  readonly random: SeededRandom;
  /** Fault rules of packets, applied where they enter the wire. */
  readonly faults: FaultScript<PacketView, PacketMatch, PacketAction>;
  readonly counters: FabricCounters = {
    sent: 0,
    delivered: 0,
    lost: 0,
    duplicated: 0,
    reordered: 0,
    corrupted: 0,
    partitioned: 0,
    faulted: 0,
    overflowed: 0,
    undeliverable: 0,
  };
  readonly mtuBytes: number;
  /** @internal of the ports of this fabric */
  readonly pool = new PacketPool();
  tap: FabricTap | undefined;
  /** Shown every packet that the network loses, and why. */
  lossTap: ((packet: TappedPacket, reason: LossReason, nowUs: number) => void) | undefined;

  private readonly receivers = new Map<string, PacketReceiver>();
  /** Systems of shared addresses, by the addresses of a device. */
  private readonly systems = new Map<string, GroupSystem>();
  private readonly nodes = new Map<string, MockNode>();
  /** Addresses that have joined, by group. */
  private readonly groups = new Map<string, Set<string>>();
  private readonly links = new Map<string, Map<string, Link>>();
  private readonly bottlenecks = new Map<string, Bottleneck>();
  private readonly settings: {
    readonly where: LinkSelection;
    readonly link: Partial<LinkOptions>;
  }[] = [];
  /** Flows whose sender will get a report that no port is there: one for many packets. */
  private readonly unreachable = new Set<string>();
  private readonly runner: Runner;

  /** @throws RangeError for an option that there is not, or a value out of its limits */
  constructor(options: FabricOptions = {}) {
    checkOptions(options, OPTIONS, outOfRange);
    const { seed = 1, link = {}, mtuBytes = 1024, autoRun = false, startUs = 0 } = options;
    this.clock = new VirtualClock(startUs, () => this.runner.schedule());
    this.random = new SeededRandom(seed);
    this.faults = new FaultScript(PACKET_FAULTS, seed, newRandom);
    this.mtuBytes = mtuBytes;
    this.setLink({}, link);
    this.runner = new Runner(this.clock, autoRun);
  }

  /** True if time advances by itself. */
  get autoRun(): boolean {
    return this.runner.auto;
  }

  /**
   * Lets time pass, with microtasks drained between its steps.
   * @throws Error when `until` has not come true and nothing more can happen, or in time;
   * RangeError for options that are none
   */
  run(options: RunOptions): Promise<void> {
    return this.runner.run(options);
  }

  /** Advances one step of time without draining microtasks: for programs that use none. */
  step(): boolean {
    return this.clock.step();
  }

  /** @throws SpiError('EADDRINUSE') when the fabric has a port of one of these addresses */
  openPort(options: MemoryPortOptions): MemoryPort {
    const port = new MemoryPort(this, options);
    this.bindAll(port.gids.map(ipFromGid), port);
    return port;
  }

  /** @internal where addresses are shared: a port that reads these, one for each address */
  openPortOver(sockets: readonly SteeredSocket[], options: MemoryPortOptions): MemoryPort {
    const port = new MemoryPort(this, options);
    for (const socket of sockets) socket.readBy(port);
    return port;
  }

  /** @internal for what has addresses; @throws SpiError('EADDRINUSE') */
  bind(address: string, receiver: PacketReceiver): void {
    this.bindAll([address], receiver);
  }

  /** @internal of an address that something else has, nothing happens */
  unbind(address: string, receiver: PacketReceiver): void {
    if (this.receivers.get(address) === receiver) this.receivers.delete(address);
  }

  /** @internal */
  isBound(address: string): boolean {
    return this.receivers.has(address);
  }

  private bindAll(addresses: readonly string[], receiver: PacketReceiver): void {
    for (const address of addresses) {
      if (!this.receivers.has(address)) continue;
      throw new SpiError('EADDRINUSE', `${address} is in use on this fabric`);
    }
    for (const address of addresses) this.receivers.set(address, receiver);
  }

  /** @internal what processes that share these addresses have of the system */
  systemOf(addresses: readonly string[]): GroupSystem {
    const key = addresses.join();
    let system = this.systems.get(key);
    if (!system) this.systems.set(key, (system = new GroupSystem(this, addresses)));
    return system;
  }

  /** @internal for nodes: makes them findable */
  addNode(node: MockNode): void {
    for (const address of node.port.gids.map(ipFromGid)) {
      this.nodes.set(address, node);
      if (node.process !== undefined) this.nodes.set(nodeKey(address, node.process), node);
    }
  }

  /**
   * The node that was opened last at this address: where its faults are.
   * @param process the one of several that share the address
   */
  node(address: string, process?: string): MockNode | undefined {
    return this.nodes.get(process === undefined ? address : nodeKey(address, process));
  }

  /**
   * For the end of a test: every fault of the fabric, of its ports and of its nodes' requests
   * that is still at work has hit something.
   * @throws Error that names those that have not
   */
  assertFaultsHit(): void {
    const of = (where: string, unhit: readonly string[]): string[] =>
      unhit.map((fault) => `${where}: ${fault}`);
    const ofNodes = [...this.nodes].flatMap(([address, node]) => [
      ...of(`port of ${address}`, node.port.faults.unhit),
      ...of(`sends of ${address}`, node.sendFaults.unhit),
      ...of(`receives of ${address}`, node.receiveFaults.unhit),
    ]);
    refuseUnhit([...of('packets', this.faults.unhit), ...ofNodes]);
  }

  /** @internal for the port itself, when it closes */
  removePort(port: MemoryPort): void {
    for (const address of port.gids.map(ipFromGid)) {
      this.receivers.get(address)?.notReadBy?.(port);
      this.unbind(address, port);
    }
  }

  /** @internal for ports: interest in keeping the process alive while time moves by itself. */
  holdProcess(change: 1 | -1): void {
    this.runner.holdProcess(change);
  }

  /** Changes links, present and future. @throws RangeError for an option out of its limits */
  setLink(where: LinkSelection, link: Partial<LinkOptions>): void {
    checkSelection('setLink', where);
    checkValue('link', link, OBJECT, outOfRange);
    const known = this.settings.filter((setting) => covers(where, setting.where));
    for (const setting of known) checkLink({ ...defaultLink, ...setting.link, ...link });
    checkLink({ ...defaultLink, ...link });
    this.settings.push({ where, link });
    for (const existing of this.select(where)) {
      existing.options = { ...existing.options, ...link };
    }
  }

  /** Sends all packets to this address through one port of a switch from now on. */
  setBottleneck(to: string, options: BottleneckOptions): Bottleneck {
    checkValue('to', to, ADDRESS, outOfRange);
    const bottleneck = new Bottleneck(options);
    this.bottlenecks.set(to, bottleneck);
    return bottleneck;
  }

  /** Packets from any of one side to any of the other are lost, in both directions or in one. */
  partition(
    side: readonly string[],
    otherSide: readonly string[],
    direction: 'both' | 'out' = 'both',
  ): void {
    checkValue('side', side, ADDRESSES, outOfRange);
    checkValue('otherSide', otherSide, ADDRESSES, outOfRange);
    checkValue('direction', direction, DIRECTION, outOfRange);
    for (const from of side) {
      for (const to of otherSide) {
        this.link(from, to).partitioned = true;
        if (direction === 'both') this.link(to, from).partitioned = true;
      }
    }
  }

  /** Ends partitions and clogs of these links, or all. */
  heal(where: LinkSelection = {}): void {
    checkSelection('heal', where);
    for (const link of this.select(where)) {
      link.partitioned = false;
      this.unclogLink(link);
    }
  }

  /** Packets of these links, between the addresses there are, wait until they are unclogged. */
  clog(where: LinkSelection): void {
    checkSelection('clog', where);
    const addresses = [...this.receivers.keys()];
    for (const from of addresses) for (const to of addresses) this.link(from, to);
    for (const link of this.select(where)) link.clogged = true;
  }

  unclog(where: LinkSelection = {}): void {
    checkSelection('unclog', where);
    for (const link of this.select(where)) this.unclogLink(link);
  }

  /** @internal the link of one direction, made when first asked for */
  link(from: string, to: string): Link {
    let links = this.links.get(from);
    if (!links) this.links.set(from, (links = new Map<string, Link>()));
    let link = links.get(to);
    if (!link) {
      link = new Link(from, to);
      for (const setting of this.settings) {
        if (covers(setting.where, link)) link.options = { ...link.options, ...setting.link };
      }
      links.set(to, link);
    }
    return link;
  }

  /** @internal for ports: packets to a group come to this address too */
  joinGroup(group: string, address: string): void {
    const members = this.groups.get(group) ?? new Set();
    this.groups.set(group, members.add(address));
  }

  /** @internal */
  leaveGroup(group: string, address: string): void {
    const members = this.groups.get(group);
    members?.delete(address);
    if (members?.size === 0) this.groups.delete(group);
  }

  /** @internal puts a packet on the wire; it belongs to the fabric from now on. */
  transmit(packet: WirePacket): void {
    const { from, to, isMulticast } = packet.flow;
    if (!isMulticast) return this.transmitOver(packet, this.link(from, to));
    // A switch makes the copies: each member has a link of its own, with its own faults.
    for (const member of this.groups.get(to) ?? []) {
      this.transmitOver(this.pool.copy(packet), this.link(from, member));
    }
    this.pool.release(packet);
  }

  private transmitOver(packet: WirePacket, link: Link): void {
    this.counters.sent++;
    const nowUs = this.clock.now();
    this.tap?.('sent', packet, nowUs);
    const arrivalUs = link.deliveryUs(nowUs, packet.length, this.random);
    if (this.faults.any) {
      const action = this.faults.decide(viewOf(packet));
      if (action?.type === 'drop') return this.drop(packet, 'faulted');
      if (action?.type === 'delay') return this.arriveAt(arrivalUs + action.byUs, packet, link);
      if (action?.type === 'corrupt') this.flip(packet, action.byteOffset, action.mask ?? 1);
      if (action?.type === 'duplicate') {
        for (const afterUs of action.afterUs) this.duplicate(packet, arrivalUs + afterUs, link);
      }
    }
    if (link.partitioned) return this.drop(packet, 'partitioned');
    this.chance(packet, arrivalUs, link);
  }

  private chance(packet: WirePacket, arrivalUs: number, link: Link): void {
    const { random } = this;
    const { options } = link;
    if (random.percent(options.duplicatePercent)) {
      this.duplicate(packet, arrivalUs + random.unit() * options.duplicateDelayUs, link);
    }
    if (random.percent(options.lossPercent)) return this.drop(packet, 'lost');
    if (random.percent(options.corruptPercent)) {
      for (let flips = random.between(1, 3); flips > 0; flips--) {
        this.flip(packet, random.below(packet.length), 1 << random.below(8));
      }
    }
    if (random.percent(options.reorderPercent)) {
      this.counters.reordered++;
      this.arriveAt(arrivalUs + random.unit() * options.reorderDelayUs, packet, link);
    } else {
      this.arriveAt(link.inOrder(arrivalUs), packet, link);
    }
  }

  private duplicate(packet: WirePacket, arrivalUs: number, link: Link): void {
    this.counters.duplicated++;
    this.arriveAt(arrivalUs, this.pool.copy(packet), link);
  }

  private flip(packet: WirePacket, byteOffset: number, mask: number): void {
    const at = byteOffset % packet.length;
    packet.buffer[at] = (packet.buffer[at] as number) ^ mask;
    this.counters.corrupted++;
  }

  private arriveAt(timeUs: number, packet: WirePacket, link: Link): void {
    this.clock.at(timeUs, () => {
      if (link.clogged) link.held.push(packet);
      else this.pass(packet, link.to);
    });
  }

  private pass(packet: WirePacket, to: string): void {
    const bottleneck = this.bottlenecks.get(to);
    if (bottleneck === undefined) return this.deliver(packet, to);
    const passUs = bottleneck.passUs(this.clock.now(), packet.length + OVERHEAD_BYTES);
    if (passUs === undefined) return this.drop(packet, 'overflowed');
    this.clock.at(passUs, () => this.deliver(packet, to));
  }

  private unclogLink(link: Link): void {
    link.clogged = false;
    const nowUs = this.clock.now();
    for (const packet of link.held.splice(0)) this.arriveAt(nowUs, packet, link);
  }

  private deliver(packet: WirePacket, to: string): void {
    const receiver = this.receivers.get(to);
    if (!receiver) {
      this.reportUnreachable(packet);
      return this.drop(packet, 'undeliverable');
    }
    this.counters.delivered++;
    this.tap?.('delivered', packet, this.clock.now());
    receiver.deliver(packet);
  }

  private drop(packet: WirePacket, reason: LossReason): void {
    this.counters[reason]++;
    this.lossTap?.(packet, reason, this.clock.now());
    this.pool.release(packet);
  }

  private reportUnreachable(packet: WirePacket): void {
    const { from, to, destination, isMulticast } = packet.flow;
    if (isMulticast) return;
    if (this.link(to, from).partitioned || this.unreachable.has(`${from} ${to}`)) return;
    this.unreachable.add(`${from} ${to}`);
    this.clock.at(this.clock.now() + UNREACHABLE_AFTER_US, () => {
      this.unreachable.delete(`${from} ${to}`);
      this.receivers.get(from)?.unreachable(destination);
    });
  }

  private select(where: LinkSelection): Link[] {
    const all = [...this.links.values()].flatMap((links) => [...links.values()]);
    return all.filter((link) => covers(where, link));
  }
}

const newRandom = (seed: number): SeededRandom => new SeededRandom(seed);

function nodeKey(address: string, process: string): string {
  return `${address} of ${process}`;
}

function checkSelection(call: string, where: LinkSelection): void {
  checkOptions(where, SELECTION, within(call, outOfRange));
}

function covers(where: LinkSelection, link: LinkSelection): boolean {
  return (
    (where.from === undefined || where.from === link.from) &&
    (where.to === undefined || where.to === link.to)
  );
}
