/**
 * One life of an endpoint's queue pair: writes requests and receives as words of the rings, and
 * takes in their completions. `ep.reset()` ends it and starts another with a fresh queue pair
 * number, so that a late completion can never be taken for one of the next life.
 */
import {
  type CompletionOwner,
  type CompletionOwners,
  type DatEvent,
  type EventBatch,
} from '../evd/index.js';
import { toDatError } from '../errors/index.js';
import {
  Access,
  type AsyncEventType,
  type CompletionQueue,
  CQE,
  type Device,
  type ProtectionDomain,
  QpState,
  QpType,
  type QueuePair,
  Ring,
  RQE,
  rqeBytes,
  SQE,
  WcOpcode,
  WcStatus,
  WrFlags,
  WrOpcode,
} from '../spi/index.js';
import { dtoEvent } from './dto-event.js';
import type { Ep } from './ep.js';
import type { EpAttributes } from './ep-attributes.js';
import type { LmrSegment } from './segment.js';
import type { Srq } from './srq.js';
import { Slot, WorkQueue } from './work-queue.js';

const U32 = 2 ** 32;
/** WcOpcode of everything that comes from a receive queue. */
const RECEIVE_BIT = WcOpcode.RECV;

/** What the endpoint makes of completions. Called while the CQ is scanned, in ring order. */
export interface EpQueuesListener {
  /** A receive has succeeded; it is about to become dequeuable. */
  onReceived(): void;
  /** A request or receive has failed by itself: not flushed. */
  onFailed(): void;
  /** Entries have been reclaimed. */
  onReclaimed(): void;
}

/** A doorbell throws when the device is gone for good. */
const DOORBELL = { operation: 'ep.post', hint: 'the device is gone' };

/** What one life is made of. */
export interface EpQueuesInit {
  /** Named by its completions. */
  readonly ep: Ep;
  readonly device: Device;
  readonly owners: CompletionOwners;
  readonly pd: ProtectionDomain;
  readonly requestCq: CompletionQueue;
  readonly recvCq: CompletionQueue;
  readonly attributes: EpAttributes;
  /** Receives come from here, in place of a queue of its own. */
  readonly srq: Srq | undefined;
  readonly onQueuePairEvent: (event: AsyncEventType) => void;
  readonly listener: EpQueuesListener;
}

/** What peers may do through the queue pair; what they may reach is up to each memory region. */
export const EP_ACCESS =
  Access.LOCAL_WRITE | Access.REMOTE_WRITE | Access.REMOTE_READ | Access.REMOTE_ATOMIC;

export class EpQueues implements CompletionOwner {
  readonly qp: QueuePair;
  readonly sends: WorkQueue;
  readonly receives: WorkQueue;
  /** Until the connection is established, requests wait in the ring. */
  sendDoorbellOpen = false;
  /** No receive will complete any more (QP_LAST_WQE_REACHED): said of shared receive queues only. */
  receivesEnded: boolean;
  private readonly context: number;
  private readonly listener: EpQueuesListener;
  private readonly signalEvery: number;
  private unsignalledRun = 0;
  private burstDepth = 0;
  private ended = false;

  /**
   * Creates the queue pair and takes it to INIT.
   * @throws SpiError, or DatError when there are no completion contexts left
   */
  constructor(private readonly init: EpQueuesInit) {
    this.listener = init.listener;
    this.context = init.owners.allocate(this);
    const { attributes } = init;
    try {
      this.qp = this.createQueuePair();
    } catch (error) {
      init.owners.free(this.context);
      throw error;
    }
    const { maxRequestDtos, maxRequestIov } = attributes;
    this.sends = new WorkQueue(this.qp.sendRing, maxRequestDtos, maxRequestIov, SQE.SEGMENTS);
    this.receives = this.createReceives();
    this.receivesEnded = init.srq === undefined;
    this.signalEvery = Math.max(1, maxRequestDtos >>> 1);
  }

  /** With a shared receive queue, one that stays empty. */
  private createReceives(): WorkQueue {
    const { maxRecvDtos, maxRecvIov } = this.init.attributes;
    const { receiveRing } = this.qp;
    if (this.init.srq !== undefined) return new WorkQueue(NO_RING, 0, 1, RQE.SEGMENTS);
    if (receiveRing === undefined) throw new Error('an RC queue pair has a receive ring');
    return new WorkQueue(receiveRing, maxRecvDtos, maxRecvIov, RQE.SEGMENTS);
  }

  private createQueuePair(): QueuePair {
    const { device, attributes, pd, requestCq, recvCq, srq, onQueuePairEvent } = this.init;
    const qp = device.createQueuePair({
      type: QpType.RC,
      pd,
      sendCq: requestCq,
      receiveCq: recvCq,
      ...(srq !== undefined && { srq: srq.queue }),
      // The marker that ends the queue takes the last entry.
      maxSendWr: attributes.maxRequestDtos + 1,
      maxReceiveWr: attributes.maxRecvDtos,
      maxSendSge: attributes.maxRequestIov,
      maxReceiveSge: attributes.maxRecvIov,
      maxInlineBytes: 0,
      context: this.context,
      onEvent: onQueuePairEvent,
    });
    const { portNumber } = device.attributes;
    qp.modify({ state: QpState.INIT, pkeyIndex: 0, portNumber, accessFlags: EP_ACCESS });
    return qp;
  }

  get sendsFull(): boolean {
    return this.sends.outstanding >= this.sends.limit;
  }

  get receivesFull(): boolean {
    return this.receives.outstanding >= this.receives.limit;
  }

  /**
   * Writes a request. The caller has checked everything, including that there is room.
   * @param wrFlags WrFlags without SIGNALED
   * @param suppress the consumer wants no event of a success
   */
  postRequest(
    opcode: number,
    wrFlags: number,
    suppress: boolean,
    segments: LmrSegment | readonly LmrSegment[],
    cookie: number,
    addressLo: number,
    addressHi: number,
    rkey: number,
  ): void {
    const { sends } = this;
    const { words } = sends.ring;
    const signal = !suppress || ++this.unsignalledRun >= this.signalEvery;
    if (signal) this.unsignalledRun = 0;
    const count = putSegments(sends, segments);
    const at = sends.nextWord;
    const flags = signal ? wrFlags | WrFlags.SIGNALED : wrFlags;
    words[at + SQE.CONTROL] = opcode | (flags << 8) | (count << 16);
    words[at + SQE.INLINE_LENGTH] = 0;
    words[at + SQE.COOKIE_LO] = cookie >>> 0;
    words[at + SQE.COOKIE_HI] = Math.floor(cookie / U32);
    words[at + SQE.REMOTE_ADDRESS_LO] = addressLo;
    words[at + SQE.REMOTE_ADDRESS_HI] = addressHi;
    words[at + SQE.RKEY] = rkey;
    words[at + SQE.IMMEDIATE_OR_INVALIDATE] = 0;
    sends.commit(count, (suppress ? Slot.HIDDEN : 0) | (signal ? Slot.SIGNALLED : 0));
    if (this.burstDepth === 0) this.ringSends();
  }

  /** Writes a receive. The caller has checked everything, including that there is room. */
  postReceive(segments: LmrSegment | readonly LmrSegment[], cookie: number): void {
    const { receives } = this;
    const { words } = receives.ring;
    const count = putSegments(receives, segments);
    const at = receives.nextWord;
    words[at + RQE.NUM_SGE] = count;
    words[at + RQE.FLAGS] = 0;
    words[at + RQE.COOKIE_LO] = cookie >>> 0;
    words[at + RQE.COOKIE_HI] = Math.floor(cookie / U32);
    receives.commit(count, Slot.SIGNALLED);
    if (this.burstDepth === 0) this.ringReceives();
  }

  /**
   * An empty RDMA write, signalled and hidden, in the entry that is kept for it: its completion
   * says that every request before it has ended, also those that end without a completion.
   */
  postMarker(): void {
    const { sends } = this;
    const { words } = sends.ring;
    const at = sends.nextWord;
    words.fill(0, at, at + SQE.SEGMENTS);
    words[at + SQE.CONTROL] = WrOpcode.RDMA_WRITE | (WrFlags.SIGNALED << 8);
    sends.commit(0, Slot.HIDDEN | Slot.SIGNALLED | Slot.MARKER);
    this.ringSends();
  }

  /** Doorbells are held back until the outermost burst ends. */
  beginBurst(): void {
    this.burstDepth++;
  }

  endBurst(): void {
    if (--this.burstDepth > 0 || this.ended) return;
    this.ringReceives();
    this.ringSends();
  }

  /** The connection is established: requests that waited may leave. */
  openSendDoorbell(): void {
    if (this.sendDoorbellOpen) return;
    this.sendDoorbellOpen = true;
    this.ringSends();
  }

  private ringSends(): void {
    if (!this.sendDoorbellOpen || !this.sends.publish()) return;
    try {
      this.qp.ringSendDoorbell();
    } catch (error) {
      throw toDatError(error, DOORBELL);
    }
  }

  private ringReceives(): void {
    if (!this.receives.publish()) return;
    try {
      this.qp.ringReceiveDoorbell();
    } catch (error) {
      throw toDatError(error, DOORBELL);
    }
  }

  /** Takes in a completion as it is scanned. Returns whether the consumer shall see it. */
  onCompletion(words: Uint32Array, at: number): boolean {
    const control = words[at + CQE.CONTROL] ?? 0;
    const index = words[at + CQE.WQE_INDEX] ?? 0;
    const status = control & 0xff;
    const isReceive = ((control >>> 8) & RECEIVE_BIT) !== 0;
    if (isReceive && this.init.srq !== undefined) {
      return this.onSharedReceive(this.init.srq, index, status);
    }
    const queue = isReceive ? this.receives : this.sends;
    // A provider that completes what is not outstanding would free entries in use.
    if (!queue.isOutstanding(index)) return false;
    const slot = queue.flagsOf(index);
    queue.reclaimThrough(index);
    this.tell(isReceive, status);
    if ((slot & Slot.MARKER) !== 0) return false;
    return status !== WcStatus.SUCCESS || (slot & Slot.HIDDEN) === 0;
  }

  private onSharedReceive(srq: Srq, slot: number, status: number): boolean {
    if (!srq.slots.reclaim(slot)) return false;
    this.tell(true, status);
    return true;
  }

  private tell(isReceive: boolean, status: number): void {
    if (status === WcStatus.SUCCESS) {
      if (isReceive) this.listener.onReceived();
    } else if (status !== WcStatus.WR_FLUSH_ERR) {
      this.listener.onFailed();
    }
    this.listener.onReclaimed();
  }

  /** The provider says that no receive of a shared queue will complete here any more. */
  onLastReceive(): void {
    this.receivesEnded = true;
    this.listener.onReclaimed();
  }

  toEvent(words: Uint32Array, at: number): DatEvent {
    return dtoEvent(this.init.ep, words, at);
  }

  fill(batch: EventBatch, slot: number, words: Uint32Array, at: number): void {
    batch.setDto(slot, this.init.ep, words, at);
  }

  /**
   * Moves the queue pair to ERR: what is outstanding flushes, also what waited for the doorbell.
   */
  toError(): void {
    if (this.qp.state !== QpState.ERR) this.qp.modify({ state: QpState.ERR });
    this.openSendDoorbell();
  }

  /** Data has come before the CM's word: the CM may have the queue pair ready already. */
  onEstablishedByData(): void {
    if (this.qp.state === QpState.RTS) this.openSendDoorbell();
  }

  /** Ends this life: its completions that nobody has dequeued are lost. */
  destroy(purge: (context: number) => void): void {
    this.qp.destroy();
    this.ended = true;
    purge(this.context);
    this.init.owners.free(this.context);
    this.sends.discard();
    this.receives.discard();
  }
}

/** The receive ring of an endpoint that has none. */
const NO_RING = Ring.allocate(1, rqeBytes(1));

function putSegments(queue: WorkQueue, segments: LmrSegment | readonly LmrSegment[]): number {
  if (!isList(segments)) {
    queue.putSegment(0, segments);
    return 1;
  }
  let count = 0;
  for (const segment of segments) queue.putSegment(count++, segment);
  return count;
}

/** `Array.isArray` does not narrow readonly arrays. */
function isList(segments: LmrSegment | readonly LmrSegment[]): segments is readonly LmrSegment[] {
  return Array.isArray(segments);
}
