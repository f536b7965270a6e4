/** What one life of an endpoint's queue pair is made of, and whom it tells. */
import type { CompletionOwners, EventEndpoint } from '../../evd/index.js';
import type {
  AsyncEventType,
  CompletionQueue,
  Device,
  ProtectionDomain,
  SharedReceiveQueue,
  XrcDomain,
} from '../../spi/index.js';
import type { EpQueueAttributes } from './attributes.js';
import type { BreakReason } from './break-causes.js';
import type { EpCounters } from './counters.js';

/** What the endpoint makes of completions. Called while the CQ is scanned, in ring order. */
export interface EpQueuesListener {
  /** A receive has succeeded; it is about to become dequeuable. */
  onReceived(): void;
  readonly connection: {
    /** A request or receive has failed by itself: not flushed. */
    onFailed(reason: BreakReason): void;
    /** Entries have been reclaimed. */
    onReclaimed(): void;
  };
}

/** A shared receive queue, as the queues that receive from it see it. */
export interface SharedReceives {
  readonly id: number;
  readonly queue: SharedReceiveQueue;
  /** `reclaim`: a completion names the slot. Returns false when it is not posted. */
  readonly slots: { reclaim(slot: number): boolean };
}

/** What one life is made of. */
export interface EpQueuesInit {
  /** Named by its completions. */
  readonly ep: EventEndpoint;
  readonly device: Device;
  readonly owners: CompletionOwners;
  readonly pd: ProtectionDomain;
  readonly requestCq: CompletionQueue;
  readonly recvCq: CompletionQueue;
  readonly attributes: EpQueueAttributes;
  /** Receives come from here instead of a queue of the endpoint's own. */
  readonly srq: SharedReceives | undefined;
  /** An XRC initiator's: it makes the queue pair, which has no receives. */
  readonly xrc: XrcDomain | undefined;
  readonly counters: EpCounters;
  readonly onQueuePairEvent: (event: AsyncEventType) => void;
  readonly listener: EpQueuesListener;
}
