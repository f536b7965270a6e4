/**
 * The engine of the software HCA: receives packets, checks and dispatches them, publishes
 * completions, and lets queue pairs send in turn. It owns the state that all its objects share, and
 * knows no socket; the time is the port's, or that of its driver.
 *
 * It is driven by four kinds of methods; `pacing` decides when:
 * - `receive` reads a burst, and the time; `readClock` the time alone.
 * - `transmit` sends waiting packets.
 * - `publish` shows completions; handlers to be called wait in `notifications`.
 * - `requestsShown` and `requestPump` announce new work.
 */
import type {
  DeviceShare,
  HandedPacket,
  Logger,
  NetworkReport,
  PacketPort,
  PollingMode,
  TimerWheel,
  WcStatus,
} from '../../core/spi/index.js';
import { FlightLog, Slab } from '../../core/spi/internal/index.js';
import { AddressHandleTable } from './ud/address-handle.js';
import type { SoftCompletionQueue } from './completions/completion-queue.js';
import { HcaCounters } from './common/counters.js';
import { ReadCopies } from './memory/read-copies.js';
import { MemoryTable } from './memory/memory.js';
import { MulticastTable } from './receiving/multicast.js';
import { type Notifiable, NotificationQueue } from './completions/notification-queue.js';
import { type HcaParameters, parametersOf } from './common/parameters.js';
import { checkPort } from './common/port-arrays.js';
import type { DeviceHooks } from './device.js';
import type { HcaDriverOptions } from './driver.js';
import { DOORBELL, LIMITS, Pacer } from './pacing/index.js';
import { PacketDispatcher } from './receiving/packet-dispatcher.js';
import { PeerPaths, PeerTable } from './sending/peer-path.js';
import { PlacementQueue } from './memory/placement-queue.js';
import { PortReleases, TransmitQueue } from './sending/transmit-queue.js';
import { type AttributeLimits, limitsOf } from './queue-pair/queue-pair-attributes.js';
import type { QueuePairMemory } from './queue-pair/queue-pair-memory.js';
import { QueuePairTable } from './queue-pair/queue-pair-table.js';
import type { SoftQueuePair } from './queue-pair/queue-pair.js';
import type { ReceivedPacket } from './common/received-packet.js';
import { type SoftSharedReceiveQueue, SharedReceiveTable } from './srq/shared-receive-queue.js';
import { SegmentCursor } from './memory/segment-cursor.js';
import { SendScheduler } from './sending/send-scheduler.js';
import { countQueuePair, countSharedReceives } from './reference-counts.js';
import { bthPkey } from '../../core/spi/wire/bth.js';

const { ANSWER, LEAVE } = DOORBELL.actions;
const MAX_BURSTS = LIMITS.MAX_BURSTS.value;

/** Default P_Key without its membership bit: the only partition of RoCE. */
const PKEY_BASE = 0x7fff;

/**
 * Asked for every send request when its turn comes: a status other than SUCCESS makes it fail so,
 * unsent and in its order. For fault injection.
 */
export type SendFault = (qp: SoftQueuePair, wrOpcode: number) => WcStatus | undefined;

/**
 * Asked each time that a message of a connection needs a receive: true has it find none. For fault
 * injection.
 */
export type ReceiveFault = (qp: SoftQueuePair) => boolean;

/** The provider's part of a device: one object, which the layers above the engine hand on. */
export interface DeviceSetup {
  readonly name: string;
  readonly port: PacketPort;
  readonly logger: Logger;
  readonly parameters?: Partial<HcaParameters>;
  readonly hooks?: DeviceHooks;
  /** @internal */
  readonly sendFault?: SendFault;
  /** @internal */
  readonly receiveFault?: ReceiveFault;
  /** Set if other processes share the device. */
  readonly share?: DeviceShare | undefined;
}

export class Hca {
  readonly port: PacketPort;
  readonly parameters: HcaParameters;
  readonly limits: AttributeLimits;
  readonly counters = new HcaCounters();
  /** The allocator of queue pair memory. */
  readonly slab = new Slab();
  /** Their flight records, for diagnosis. */
  readonly flights = new FlightLog();
  readonly queuePairs: QueuePairTable;
  readonly sharedReceives: SharedReceiveTable;
  readonly multicast: MulticastTable;
  readonly peers = new PeerTable();
  readonly paths: PeerPaths;
  /** For packets that are gathered or scattered in one go. */
  readonly cursor = new SegmentCursor();
  readonly memory: MemoryTable;
  readonly readCopies: ReadCopies;
  readonly addressHandles: AddressHandleTable;
  readonly tx: TransmitQueue;
  readonly scheduler: SendScheduler;
  readonly placements: PlacementQueue;
  /** Decides what is done next; its facts are kept here and in `scheduler`. */
  readonly pacer = new Pacer();
  readonly notifications: NotificationQueue;
  /** The time at the last look, in microseconds. */
  nowUs = 0;
  readonly sendFault: SendFault | undefined;
  readonly receiveFault: ReceiveFault | undefined;
  readonly share: DeviceShare | undefined;
  private readonly dispatcher = new PacketDispatcher(this);
  private readonly dirtyCqs: (SoftCompletionQueue | undefined)[] = [];
  /** The number of entries in use. The array is never emptied: it would have to allocate again. */
  private dirtyCount = 0;
  /** Datagram queue pairs whose packets the port has yet to take. */
  private readonly awaitingPort = new Set<SoftQueuePair>();
  private readonly releases: PortReleases;

  /** @param onCqGone for the device's list of completion queues */
  constructor(
    private readonly options: HcaDriverOptions,
    readonly timers: TimerWheel,
    private readonly onCqGone: (cq: SoftCompletionQueue) => void,
  ) {
    const { port, random, share, sendFault, receiveFault } = options;
    this.port = port;
    this.sendFault = sendFault;
    this.receiveFault = receiveFault;
    this.share = share;
    this.parameters = parametersOf(options.parameters);
    checkPort(port, this.parameters);
    this.limits = limitsOf(port, this.parameters);
    this.queuePairs = new QueuePairTable(random, share?.slot);
    this.sharedReceives = new SharedReceiveTable(random, share?.slot);
    this.multicast = new MulticastTable(port);
    this.paths = new PeerPaths({
      addPath: (...destination) => port.addPath(...destination),
      releasePath: (path) => this.releasePath(path),
    });
    this.memory = new MemoryTable(port, random, (region) => this.releaseRegion(region));
    this.readCopies = new ReadCopies(port, (region) => this.releaseRegion(region));
    this.addressHandles = new AddressHandleTable((path) => this.releasePath(path));
    this.tx = new TransmitQueue(port, (region) => this.memory.isThere(region));
    this.scheduler = new SendScheduler(this);
    this.placements = new PlacementQueue(port);
    this.releases = new PortReleases(() => this.tx.waiting);
    this.notifications = new NotificationQueue(() => this.requestPump());
  }

  // --- receiving --------------------------------------------------------------------------------

  readClock(): void {
    const { port } = this;
    port.readClock?.();
    this.nowUs = port.clockUs !== undefined ? port.clockUs[0]! : this.options.clock.now();
  }

  /** Takes in one burst of the port, and the time; the number of packets. */
  receive(): number {
    const { port, pacer } = this;
    const count = port.receive();
    this.nowUs = port.clockUs !== undefined ? port.clockUs[0]! : this.options.clock.now();
    if (count > 0) {
      pacer.moving = true;
      this.dispatcher.dispatch(count);
      pacer.loneMessage = count === 1 && this.dispatcher.tookRequest;
      this.publish();
      if (this.dispatcher.leftInPlace) port.release?.();
      pacer.moving = false;
    }
    return count;
  }

  /**
   * A packet that came to another process of the device: not called from inside of anything here.
   */
  takeHanded(packet: HandedPacket): void {
    const { pacer } = this;
    this.readClock();
    pacer.moving = true;
    this.dispatcher.dispatchHanded(packet);
    this.publish();
    pacer.moving = false;
    this.requestPump();
  }

  /** Ours is a full member's key, so a limited member's is good enough (IBTA 10.9.3). */
  pkeyAllowed(rx: ReceivedPacket): boolean {
    return (bthPkey(rx.view, rx.offset) & PKEY_BASE) === PKEY_BASE;
  }

  // --- completions and notifications ------------------------------------------------------------

  completionsPending(cq: SoftCompletionQueue): void {
    this.dirtyCqs[this.dirtyCount++] = cq;
  }

  /** Puts received bytes in memory, then shows the completions that speak of them. */
  publish(): void {
    this.placements.flush();
    if (this.dirtyCount === 0) return;
    const cqs = this.dirtyCqs;
    // A queue that breaks down flushes queue pairs, which may add to the list.
    for (let i = 0; i < this.dirtyCount; i++) {
      cqs[i]!.publish();
      cqs[i] = undefined;
    }
    this.dirtyCount = 0;
  }

  notify(target: Notifiable, argument: number): void {
    this.notifications.push(target, argument);
  }

  onCqDestroyed(cq: SoftCompletionQueue): void {
    this.onCqGone(cq);
  }

  onPollingChanged(from: PollingMode, to: PollingMode): void {
    this.pacer.adaptiveQueues += (to === 'adaptive' ? 1 : 0) - (from === 'adaptive' ? 1 : 0);
  }

  requestPump(): void {
    if (this.pacer.asks()) this.options.requestPump();
  }

  // --- sending ----------------------------------------------------------------------------------

  /** A doorbell has shown so many requests more. */
  requestsShown(qp: SoftQueuePair, count: number): void {
    this.scheduler.scheduleRequests(qp);
    const { pacer } = this;
    const decision = pacer.onDoorbell(count);
    if (decision === LEAVE) return;
    this.readClock();
    // The pump that has been asked for sends what is left.
    this.transmit(decision === ANSWER || pacer.returns);
  }

  /** True if `transmit` has work to do. */
  get sendsWaiting(): boolean {
    return this.scheduler.waiting + this.tx.waiting > 0;
  }

  /**
   * Sends what is due, a burst from each queue pair in turn, until nothing is left, the port takes
   * no more, or it is time for others (UNSENT).
   * @param returns it is called again at once: an ACK can wait for that
   */
  transmit(returns = this.pacer.returns): void {
    const { pacer } = this;
    pacer.sends();
    let more = this.flush();
    for (let bursts = 0; more && bursts < MAX_BURSTS; bursts++) {
      more = this.scheduler.fill(returns);
      if (!this.flush()) more = false;
    }
    pacer.unsent = more;
    pacer.moving = false;
    this.publish();
  }

  private flush(): boolean {
    const all = this.tx.flush();
    if (this.awaitingPort.size > 0) this.completeTaken();
    if (all) this.releases.run();
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

  /** Passes a report about packets to an address to all connections with that address. */
  onReport(report: NetworkReport): void {
    for (const qp of [...this.peers.at(report.gid)]) qp.onReport(report);
    this.publish();
  }

  // --- what packets on their way to the port refer to --------------------------------------------

  releaseRegion(region: number): void {
    this.releases.add(() => {
      this.memory.forget(region);
      this.port.removeRegion(region);
    });
  }

  releasePath(path: number): void {
    this.releases.add(() => this.port.removePath(path));
  }

  /** Releases the memory of a queue pair that ends: nothing is found in it any more. */
  releaseMemory(memory: QueuePairMemory): void {
    memory.end();
    this.releases.add(() => memory.free());
  }

  onQueuePairDestroyed(qp: SoftQueuePair): void {
    this.queuePairs.remove(qp);
    this.awaitingPort.delete(qp);
    countQueuePair(qp, -1);
  }

  onSharedReceiveQueueDestroyed(srq: SoftSharedReceiveQueue): void {
    this.sharedReceives.remove(srq);
    countSharedReceives(srq, -1);
  }
}
