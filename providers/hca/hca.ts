/**
 * The engine of the software HCA: takes packets in, checks and dispatches them, publishes
 * completions, and lets queue pairs send by turns. It owns what all its objects share, knows no
 * socket and no clock; whoever drives it says what time it is.
 */
import { GROUP_BIT, QpState, RX, RxFlags } from '../../core/spi/index.js';
import type {
  Gid,
  PacketPort,
  PollingMode,
  Random,
  Timers,
  WcStatus,
} from '../../core/spi/index.js';
import { AddressHandleTable } from './address-handle.js';
import type { CompletionHost, SoftCompletionQueue } from './completion-queue.js';
import { HcaCounters } from './counters.js';
import { DROP_OF_CHECK } from './drop-reason.js';
import { MemoryTable } from './memory.js';
import { MulticastTable } from './multicast.js';
import { NotificationQueue } from './notification-queue.js';
import type { Notifiable } from './notification-queue.js';
import type { HcaParameters } from './parameters.js';
import { PeerTable } from './peer-table.js';
import { PlacementQueue } from './placement-queue.js';
import { PortReleases } from './port-releases.js';
import { type AttributeLimits, limitsOf } from './queue-pair-attributes.js';
import { QueuePairTable } from './queue-pair-table.js';
import type { SoftQueuePair } from './queue-pair.js';
import { ReceivedPacket } from './received-packet.js';
import type { SharedReceiveHost, SoftSharedReceiveQueue } from './shared-receive-queue.js';
import { SharedReceiveTable } from './shared-receive-table.js';
import { TransmitQueue } from './transmit-queue.js';
import { TurnQueue } from './turn-queue.js';
import { endUsesOfQueuePair, endUsesOfSharedReceives } from './uses.js';
import { QPN_MULTICAST, bthDestQpn, bthPkey, bthPsn } from './wire/bth.js';
import { OPCODE_BIT, TRANSPORT } from './wire/opcode.js';
import {
  BITS_OF,
  HEADER_LENGTH_OF,
  PACKET_CHECK,
  checkPacket,
  payloadLength,
} from './wire/packet-layout.js';

/**
 * Bursts handed to the port before the driver is asked to come back: a peer may ask for a READ of
 * 2 GiB, and whoever else has something to say or to do must not wait for the end of it.
 */
const MAX_BURSTS = 2;
/** Membership bit aside, the one partition of RoCE (wire facts 1.2). */
const PKEY_BASE = 0x7fff;

const bit = (...states: readonly number[]): number =>
  states.reduce((mask, state) => mask | (1 << state), 0);
/** States that take requests and responses (wire facts 1.9, 2.8). */
const TAKES_REQUESTS = bit(QpState.RTR, QpState.RTS, QpState.SQD, QpState.SQE);
const TAKES_RESPONSES = bit(QpState.RTS, QpState.SQD);

export interface HcaOptions {
  readonly port: PacketPort;
  readonly timers: Timers;
  readonly random: Random;
  readonly parameters: HcaParameters;
  /** Something waits for the pump: called once until `pumped`. */
  readonly requestPump: () => void;
}

export class Hca implements CompletionHost, SharedReceiveHost {
  readonly port: PacketPort;
  readonly timers: Timers;
  readonly parameters: HcaParameters;
  readonly limits: AttributeLimits;
  readonly counters = new HcaCounters();
  readonly queuePairs: QueuePairTable;
  readonly sharedReceives: SharedReceiveTable;
  readonly multicast: MulticastTable;
  readonly peers = new PeerTable();
  readonly memory: MemoryTable;
  readonly addressHandles: AddressHandleTable;
  readonly tx: TransmitQueue;
  readonly placements: PlacementQueue;
  readonly notifications: NotificationQueue;
  /** Time as the driver told it last, in microseconds. */
  nowUs = 0;
  /** The device's list of completion queues. */
  onCqGone: (cq: SoftCompletionQueue) => void = () => undefined;
  /**
   * Asked for every send request when its turn comes: a status other than SUCCESS makes it fail
   * so, unsent and in its order. For fault injection.
   */
  sendFault: ((qp: SoftQueuePair, wrOpcode: number) => WcStatus | undefined) | undefined;
  /** True while the driver is at it: then nobody needs to be asked for a pump. */
  pumping = false;
  /** The port would take more, but others are to have their turn first. */
  unsent = false;
  /** The port is looked at again at once, unasked: an ACK can wait for that. */
  comesBack = false;
  private ackWaits = false;
  /** Completion queues whose consumer wants the port polled for a while after activity. */
  adaptiveCqs = 0;
  private pumpRequested = false;
  private readonly rx = new ReceivedPacket();
  private rxArena: Uint8Array | undefined;
  private readonly responders = new TurnQueue<SoftQueuePair>();
  /** No request goes before what is owed: see `scheduleFirst`. */
  private answersFirst = false;
  private readonly requesters = new TurnQueue<SoftQueuePair>();
  private readonly dirtyCqs: SoftCompletionQueue[] = [];
  /** Datagram queue pairs whose packets the port has yet to take. */
  private readonly awaitingPort = new Set<SoftQueuePair>();
  private readonly releases: PortReleases;

  constructor(private readonly options: HcaOptions) {
    const { port, random, parameters } = options;
    this.port = port;
    this.timers = options.timers;
    this.parameters = parameters;
    this.limits = limitsOf(port, parameters);
    this.queuePairs = new QueuePairTable(random);
    this.sharedReceives = new SharedReceiveTable(random);
    this.multicast = new MulticastTable(port);
    this.memory = new MemoryTable(port, random, (region) => this.releaseRegion(region));
    this.addressHandles = new AddressHandleTable((path) => this.releasePath(path));
    this.tx = new TransmitQueue(port, (region) => this.memory.isThere(region));
    this.placements = new PlacementQueue(port);
    this.releases = new PortReleases({
      releaseRegion: (region) => {
        this.memory.forget(region);
        port.removeRegion(region);
      },
      releasePath: (path) => port.removePath(path),
    });
    this.notifications = new NotificationQueue(() => this.requestPump());
  }

  // --- receiving --------------------------------------------------------------------------------

  /** Takes in one burst of the port; the number of packets. */
  receive(): number {
    const count = this.port.receive();
    if (count > 0) {
      this.lookAtArena();
      for (let i = 0; i < count; i++) this.dispatch(i * RX.WORDS);
      this.publish();
    }
    return count;
  }

  private lookAtArena(): void {
    const arena = this.port.rxArena;
    if (arena === this.rxArena) return;
    this.rxArena = arena;
    this.rx.view = new DataView(arena.buffer, arena.byteOffset, arena.byteLength);
  }

  /** One packet, in the order of checks of wire facts 1.9. */
  private dispatch(at: number): void {
    const { rx, counters } = this;
    const words = this.port.rxPackets;
    const offset = words[at + RX.OFFSET]!;
    const length = words[at + RX.LENGTH]!;
    const verdict = checkPacket(rx.view, offset, length);
    if (verdict !== PACKET_CHECK.ok) {
      counters.drops[DROP_OF_CHECK[verdict]!] += 1;
      return;
    }
    const opcode = rx.view.getUint8(offset);
    const destination = words[at + RX.LOCAL_GID_INDEX]!;
    if (destination >= GROUP_BIT) {
      this.dispatchToGroup(at, opcode);
      return;
    }
    const qp = this.queuePairs.find(bthDestQpn(rx.view, offset));
    if (qp === undefined) counters.drops.unknownQpn += 1;
    else if (qp.transport !== opcode >>> 5) counters.drops.wrongTransport += 1;
    else if ((statesFor(opcode) & (1 << qp.state)) === 0) counters.drops.wrongState += 1;
    else {
      this.describe(at, opcode);
      rx.destination = this.port.gids[destination]!;
      qp.receive(rx);
    }
  }

  /** A datagram to a group goes to QP 0xffffff (IBTA 9.6.1.1.3), and to whoever listens there. */
  private dispatchToGroup(at: number, opcode: number): void {
    const { rx, counters } = this;
    const words = this.port.rxPackets;
    const forGroup = bthDestQpn(rx.view, words[at + RX.OFFSET]!) === QPN_MULTICAST;
    if (opcode >>> 5 !== TRANSPORT.ud) counters.drops.wrongTransport += 1;
    else {
      this.describe(at, opcode);
      const group = words[at + RX.LOCAL_GID_INDEX]! - GROUP_BIT;
      if (!forGroup || this.multicast.deliver(group, rx) === 0) counters.drops.unknownQpn += 1;
    }
  }

  private describe(at: number, opcode: number): void {
    const { rx } = this;
    const words = this.port.rxPackets;
    const offset = words[at + RX.OFFSET]!;
    rx.offset = offset;
    rx.opcode = opcode;
    rx.psn = bthPsn(rx.view, offset);
    rx.payloadOffset = offset + HEADER_LENGTH_OF[opcode]!;
    rx.payloadLength = payloadLength(rx.view, offset, words[at + RX.LENGTH]!);
    rx.localGidIndex = words[at + RX.LOCAL_GID_INDEX]!;
    rx.source0 = words[at + RX.SOURCE_GID]!;
    rx.source1 = words[at + RX.SOURCE_GID + 1]!;
    rx.source2 = words[at + RX.SOURCE_GID + 2]!;
    rx.source3 = words[at + RX.SOURCE_GID + 3]!;
    rx.isIpv6 = (words[at + RX.FLAGS]! & RxFlags.IPV6) !== 0;
  }

  /** Ours is a full member's key, so a limited member's is good enough (IBTA 10.9.3). */
  pkeyAllowed(rx: ReceivedPacket): boolean {
    return (bthPkey(rx.view, rx.offset) & PKEY_BASE) === PKEY_BASE;
  }

  // --- completions and notifications ------------------------------------------------------------

  completionsPending(cq: SoftCompletionQueue): void {
    this.dirtyCqs.push(cq);
  }

  /** Puts received bytes in memory, then shows the completions that speak of them. */
  publish(): void {
    this.placements.flush();
    const cqs = this.dirtyCqs;
    if (cqs.length === 0) return;
    // A queue that breaks down flushes queue pairs, which may add to the list.
    for (let i = 0; i < cqs.length; i++) cqs[i]!.publish();
    cqs.length = 0;
  }

  notify(target: Notifiable, argument: number): void {
    this.notifications.push(target, argument);
  }

  onCqDestroyed(cq: SoftCompletionQueue): void {
    this.onCqGone(cq);
  }

  onPollingChanged(from: PollingMode, to: PollingMode): void {
    this.adaptiveCqs += (to === 'adaptive' ? 1 : 0) - (from === 'adaptive' ? 1 : 0);
  }

  requestPump(): void {
    if (this.pumping || this.pumpRequested) return;
    this.pumpRequested = true;
    this.options.requestPump();
  }

  /** A pump has begun: the next request is news again. */
  pumped(): void {
    this.pumpRequested = false;
  }

  // --- sending ----------------------------------------------------------------------------------

  scheduleResponses(qp: SoftQueuePair): void {
    if (qp.responsesScheduled) return;
    qp.responsesScheduled = true;
    this.responders.push(qp);
    this.requestPump();
  }

  /**
   * The same, before every request: a peer is to hear a NAK, and what has arrived, before it hears
   * of the end (a DREQ).
   */
  scheduleFirst(qp: SoftQueuePair): void {
    this.answersFirst = true;
    this.scheduleResponses(qp);
  }

  scheduleRequests(qp: SoftQueuePair): void {
    if (qp.requestsScheduled) return;
    qp.requestsScheduled = true;
    this.requesters.push(qp);
    this.requestPump();
  }

  /** Whether `transmit` has something to do. */
  get sendsWaiting(): boolean {
    return this.responders.length + this.requesters.length + this.tx.waiting > 0;
  }

  /**
   * Sends what is due, a burst from each queue pair in turn, until nothing is left, the port takes
   * no more, or it is time for others (`unsent`). True when anything went out.
   */
  transmit(): boolean {
    const before = this.tx.taken;
    this.unsent = false;
    if (this.flush()) {
      let more = true;
      for (let bursts = 0; more && bursts < MAX_BURSTS; bursts++) {
        more = this.turns();
        if (!this.flush()) more = false;
      }
      this.unsent = more;
    }
    this.publish();
    return this.tx.taken !== before;
  }

  /**
   * Fills the port's arrays once; true when there is more to send than fits. Responses come first,
   * but for one burst of requests: an ACK behind the short SEND that answers leaves in its
   * datagram, or the next time. A NAK, and what a queue pair in ERR owes, is in no such company.
   */
  private turns(): boolean {
    const { responders, requesters, tx } = this;
    const { burstPackets } = this.parameters;
    if (requesters.length > 0 && !this.answersFirst) {
      this.requestTurn(burstPackets);
      if (this.ackMayWait()) return false;
    }
    while (responders.length > 0 && tx.hasRoom(1)) {
      const qp = responders.shift();
      qp.responsesScheduled = false;
      if (!qp.destroyed && qp.transmitResponses(burstPackets)) this.scheduleResponses(qp);
    }
    if (responders.length === 0) this.answersFirst = this.ackWaits = false;
    while (requesters.length > 0 && responders.length === 0 && this.requestTurn(burstPackets));
    return responders.length > 0 || requesters.length > 0;
  }

  /**
   * A datagram of two packets takes the system longer (5.1 us and 0.9 more), and the peer waits
   * for the message: when we come back at once it goes alone, and the response the next time.
   */
  private ackMayWait(): boolean {
    const { tx, responders, requesters } = this;
    const two = tx.waiting === 1 && responders.length === 1 && requesters.length === 0;
    return (this.ackWaits = two && this.comesBack && !this.ackWaits);
  }

  /** A burst of the requester whose turn it is; false when it may not fit. */
  private requestTurn(burstPackets: number): boolean {
    if (!this.tx.hasRoom(this.parameters.maxSge + 1)) return false;
    const qp = this.requesters.shift();
    qp.requestsScheduled = false;
    if (!qp.destroyed && qp.transmitRequests(burstPackets)) this.scheduleRequests(qp);
    return true;
  }

  private flush(): boolean {
    const all = this.tx.flush();
    if (this.awaitingPort.size > 0) this.completeTaken();
    if (all && !this.releases.empty) this.releases.run();
    return all;
  }

  awaitTaken(qp: SoftQueuePair): void {
    this.awaitingPort.add(qp);
  }

  private completeTaken(): void {
    for (const qp of this.awaitingPort) {
      if (!qp.destroyed) qp.onPacketsTaken(this.tx.taken);
      if (qp.destroyed || qp.oldest === qp.fetched) this.awaitingPort.delete(qp);
    }
  }

  /** The network says that nothing listens there. */
  onUnreachable(gid: Gid): void {
    for (const qp of [...this.peers.at(gid)]) qp.requester.onUnreachable();
    this.publish();
  }

  // --- what packets on their way to the port refer to --------------------------------------------

  releaseRegion(region: number): void {
    this.releases.addRegion(region);
    if (this.tx.waiting === 0) this.releases.run();
  }

  releasePath(path: number): void {
    this.releases.addPath(path);
    if (this.tx.waiting === 0) this.releases.run();
  }

  onQueuePairDestroyed(qp: SoftQueuePair): void {
    this.queuePairs.remove(qp);
    this.awaitingPort.delete(qp);
    endUsesOfQueuePair(qp);
  }

  onSharedReceiveQueueDestroyed(srq: SoftSharedReceiveQueue): void {
    this.sharedReceives.remove(srq);
    endUsesOfSharedReceives(srq);
  }
}

function statesFor(opcode: number): number {
  return (BITS_OF[opcode]! & OPCODE_BIT.request) !== 0 ? TAKES_REQUESTS : TAKES_RESPONSES;
}
