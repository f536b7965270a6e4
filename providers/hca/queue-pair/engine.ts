/** Parts of the software HCA that all queue pairs share. */
import type { PacketPort, TimerWheel, WcStatus } from '../../../core/spi/index.js';
import type { FlightLog, Slab } from '../../../core/spi/internal/index.js';
import type { HcaCounters } from '../common/counters.js';
import type { HcaParameters } from '../common/parameters.js';
import type { ReceivedPacket } from '../common/received-packet.js';
import type { Notifiable } from '../completions/notification-queue.js';
import type { KeptMemory } from '../memory/kept-memory.js';
import type { MemoryTable } from '../memory/memory.js';
import type { PlacementQueue } from '../memory/placement-queue.js';
import type { SegmentCursor } from '../memory/segment-cursor.js';
import type { MulticastTable } from '../receiving/multicast.js';
import type { PeerPaths } from '../sending/peer-path.js';
import type { PeerTable } from '../sending/peer-table.js';
import type { Pacer } from '../pacing/index.js';
import type { SendTurns } from '../sending/send-scheduler.js';
import type { TransmitQueue } from '../sending/transmit-queue.js';
import type { SharedReceiveTable } from '../srq/shared-receive-table.js';
import type { AttributeLimits } from './queue-pair-attributes.js';
import type { QueuePairMemory } from './queue-pair-memory.js';
import type { SoftQueuePair } from './queue-pair.js';

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

export interface Engine {
  readonly port: PacketPort;
  readonly timers: TimerWheel;
  readonly parameters: HcaParameters;
  readonly limits: AttributeLimits;
  readonly counters: HcaCounters;
  /** The allocator of queue pair memory. */
  readonly slab: Slab;
  /** Their flight records, for diagnosis. */
  readonly flights: FlightLog;
  readonly sharedReceives: SharedReceiveTable;
  readonly multicast: MulticastTable;
  readonly peers: PeerTable;
  readonly paths: PeerPaths;
  /** For packets that are gathered or scattered in one go. */
  readonly cursor: SegmentCursor;
  readonly memory: MemoryTable;
  readonly kept: KeptMemory;
  readonly tx: TransmitQueue;
  readonly turns: SendTurns;
  readonly placements: PlacementQueue;
  readonly pacer: Pacer;
  /** The time at the last look, in microseconds. */
  readonly nowUs: number;
  readonly sendFault: SendFault | undefined;
  readonly receiveFault: ReceiveFault | undefined;
  pkeyAllowed(rx: ReceivedPacket): boolean;
  /** Puts received bytes in memory, then shows the completions that speak of them. */
  publish(): void;
  notify(target: Notifiable, argument: number): void;
  /** A doorbell has shown so many requests more. */
  requestsShown(qp: SoftQueuePair, count: number): void;
  /** Notifies the queue pair when the port has taken its packets. */
  awaitTaken(qp: SoftQueuePair): void;
  releaseRegion(region: number): void;
  /** Releases the memory of a queue pair that ends: nothing in it is used any more. */
  releaseMemory(memory: QueuePairMemory): void;
  onQueuePairDestroyed(qp: SoftQueuePair): void;
}
