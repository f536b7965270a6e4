/**
 * One life of an endpoint's queue pair: writes requests and receives as words of the rings, and
 * takes in their completions. `ep.reset()` ends it and starts another with a fresh queue pair
 * number, so that a late completion can never be taken for one of the next life.
 */
import { assert } from '../../spi/checks/index.js';
import {
  type CompletionOwner,
  type CompletionView,
  type DatEvent,
  type Evd,
  type EventBatch,
  type EventEndpoint,
} from '../../evd/index.js';
import { toDatError } from '../../errors/index.js';
import {
  CQE,
  QpState,
  type QueuePair,
  Ring,
  RQE,
  rqeBytes,
  SQE,
  WcFlags,
  WcOpcode,
  WcStatus,
  WrFlags,
  WrOpcode,
} from '../../spi/index.js';
import { causeOfCompletion, unansweredProbe } from '../endpoint/break-causes.js';
import { CompletionFlags } from '../common/constants.js';
import { dtoEvent } from '../common/dto-event.js';
import { endpointQueuePair, sendIov } from './queue-pair.js';
import { EpBinds } from './binds.js';
import type { EpCounters } from '../endpoint/counters.js';
import { EpLeftovers } from '../endpoint/leftovers.js';
import type { EpQueuesInit, EpQueuesListener } from './queues-init.js';
import { type RequestSpec, slotFlagsOf, wrFlagsOf } from './request-specs.js';
import type { RemoteSegment, Segments } from '../memory/segment.js';
import type { Srq } from '../srq/srq.js';
import { RECEIVE_ENTRY, SEND_ENTRY, Slot, WorkQueue } from './work-queue.js';

const { SUPPRESS } = CompletionFlags;
const U32 = 2 ** 32;
/** WcOpcode of everything that comes from a receive queue. */
const RECEIVE_BIT = WcOpcode.RECV;
const UNKNOWN_SLOT = -1;
/** So many requests of a burst the device is told of at once: it begins with them. */
const RING_EVERY = 32;
/** In place of a receive ring where there is none: nothing is ever posted to it. */
const NO_RECEIVES = Ring.allocate(1, rqeBytes(1));

/** A doorbell throws when the device is gone for good. */
const DOORBELL = { operation: 'ep.post', hint: 'the device is gone' };

export class EpQueues implements CompletionOwner {
  readonly qp: QueuePair;
  readonly sends: WorkQueue;
  /** With a shared receive queue, one that is always empty. */
  readonly receives: WorkQueue;
  readonly counters: EpCounters;
  /** Until the connection is established, requests wait in the ring. */
  sendDoorbellOpen = false;
  /** QP_LAST_WQE_REACHED: no receive of a shared receive queue will complete here any more. */
  receivesEnded: boolean;
  /** XRC: the shared receive queue at the other end that requests name from now on. */
  srqn = 0;
  private readonly ep: EventEndpoint;
  /** Receives come from there. */
  private readonly srq: Srq | undefined;
  /** There from the first bind of a window on. */
  private ownBinds: EpBinds | undefined = undefined;
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
  constructor(init: EpQueuesInit) {
    this.ep = init.ep;
    this.srq = init.srq;
    this.listener = init.listener;
    this.counters = init.counters;
    this.context = init.owners.allocate(this);
    const { attributes } = init;
    try {
      this.qp = endpointQueuePair(init, this.context);
    } catch (error) {
      init.owners.free(this.context);
      throw error;
    }
    const { sendRing } = this.qp;
    const { maxRequestDtos } = attributes;
    this.sends = new WorkQueue(sendRing, maxRequestDtos, sendIov(attributes), SEND_ENTRY);
    this.receives = this.createReceives(init);
    this.receivesEnded = init.srq === undefined;
    this.signalEvery = Math.max(1, maxRequestDtos >>> 1);
  }

  /** With a shared receive queue, one that stays empty. */
  private createReceives({ attributes, srq, xrc }: EpQueuesInit): WorkQueue {
    const { maxRecvDtos, maxRecvIov } = attributes;
    const { receiveRing } = this.qp;
    if ((srq ?? xrc) !== undefined) return new WorkQueue(NO_RECEIVES, 0, 1, RECEIVE_ENTRY);
    assert(receiveRing !== undefined, 'an RC queue pair without an SRQ has a receive ring');
    return new WorkQueue(receiveRing, maxRecvDtos, maxRecvIov, RECEIVE_ENTRY);
  }

  /** Binds of windows that are under way. */
  get binds(): EpBinds {
    return (this.ownBinds ??= new EpBinds(this.ep, this));
  }

  /** Writes a request. The caller has checked everything, including that there is room. */
  postRequest(
    request: RequestSpec,
    segments: Segments,
    cookie: number,
    remote: RemoteSegment,
    flags: number,
    word: number,
  ): void {
    const { sends } = this;
    const { words } = sends.ring;
    const signal = (flags & SUPPRESS) === 0 || ++this.unsignalledRun >= this.signalEvery;
    if (signal) this.unsignalledRun = 0;
    const signalled = signal ? WrFlags.SIGNALED : 0;
    const count = sends.putSegments(segments);
    const at = sends.nextWord;
    words[at + SQE.CONTROL] =
      request.opcode | ((wrFlagsOf(flags) | signalled) << 8) | (count << 16);
    words[at + SQE.INLINE_LENGTH] = 0;
    words[at + SQE.COOKIE_LO] = cookie >>> 0;
    words[at + SQE.COOKIE_HI] = Math.floor(cookie / U32);
    words[at + SQE.REMOTE_ADDRESS_LO] = remote.addressLo;
    words[at + SQE.REMOTE_ADDRESS_HI] = remote.addressHi;
    words[at + SQE.RKEY] = remote.rmrContext;
    words[at + SQE.IMMEDIATE_OR_INVALIDATE] = word;
    words[at + SQE.XRC_SRQN] = this.srqn;
    sends.commit(request.slot | slotFlagsOf(flags) | (signal ? Slot.SIGNALLED : 0));
    this.kickSends();
  }

  /** What has been written may leave, unless a burst is under way that has only just begun. */
  kickSends(): void {
    if (this.burstDepth === 0 || this.sends.unpublished >= RING_EVERY) this.ringSends();
  }

  /** The operands of the atomic that is posted next: two pairs of words, low word first. */
  putOperands(operands: Uint32Array): void {
    const { sends } = this;
    sends.ring.words.set(operands, sends.nextWord + SQE.COMPARE_ADD_LO);
  }

  /** Writes a receive. The caller has checked everything, including that there is room. */
  postReceive(segments: Segments, cookie: number, slotFlags: number): void {
    const { receives } = this;
    const { words } = receives.ring;
    const count = receives.putSegments(segments);
    const at = receives.nextWord;
    words[at + RQE.NUM_SGE] = count;
    words[at + RQE.FLAGS] = 0;
    words[at + RQE.COOKIE_LO] = cookie >>> 0;
    words[at + RQE.COOKIE_HI] = Math.floor(cookie / U32);
    receives.commit(slotFlags | Slot.SIGNALLED);
    if (this.burstDepth === 0) this.ringReceives();
  }

  /**
   * Differs from before when the peer has done, or acknowledged, something since. Completions count
   * once they are taken in.
   */
  lifeSign(): number {
    const { qp, sends, receives, counters } = this;
    const heard = qp.lifeSign?.() ?? 0;
    return heard + sends.reclaimed + receives.reclaimed + counters.messagesReceived;
  }

  /** Takes over the receives posted on queues that these replace. */
  takeReceives(from: EpQueues): void {
    from.receives.moveTo(this.receives);
    this.ringReceives();
  }

  /**
   * An empty RDMA write, signalled and hidden, in the entry that is kept for it: its completion
   * says that every request before it has ended, also those that end without a completion.
   */
  postMarker(): void {
    this.postEmpty(Slot.MARKER);
  }

  /**
   * An empty RDMA write in an entry beside the consumer's own: the peer answers, or the queue pair
   * fails. At most one is under way.
   */
  postProbe(): void {
    this.sends.limit++;
    this.postEmpty(Slot.PROBE);
  }

  private postEmpty(flag: number): void {
    const { sends } = this;
    const { words } = sends.ring;
    const at = sends.nextWord;
    words.fill(0, at, at + SQE.SEGMENTS);
    words[at + SQE.CONTROL] = WrOpcode.RDMA_WRITE | (WrFlags.SIGNALED << 8);
    words[at + SQE.XRC_SRQN] = this.srqn;
    sends.commit(Slot.HIDDEN | Slot.SIGNALLED | flag);
    this.ringSends();
  }

  /** Doorbells are held back until the outermost burst ends, or many requests wait. */
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

  /** Takes in a completion as it is scanned. */
  onCompletion(words: Uint32Array, at: number): CompletionView {
    const control = words[at + CQE.CONTROL] ?? 0;
    const status = control & 0xff;
    const isReceive = ((control >>> 8) & RECEIVE_BIT) !== 0;
    const index = words[at + CQE.WQE_INDEX] ?? 0;
    const slot = this.reclaim(index, isReceive);
    if (slot === UNKNOWN_SLOT) return false;
    if (!isReceive) this.ownBinds?.onCompletion(index, status);
    // Verbs do not tell a write with immediate data from one without.
    if ((slot & Slot.IMMEDIATE) !== 0) words[at + CQE.CONTROL] = control | (WcFlags.WITH_IMM << 16);
    if (status === WcStatus.SUCCESS) {
      if (isReceive) this.onReceived(words, at);
    } else if (status !== WcStatus.WR_FLUSH_ERR) {
      const isProbe = (slot & Slot.PROBE) !== 0;
      const posted = isReceive ? undefined : this.posted(index);
      const reason = isProbe ? unansweredProbe(status) : causeOfCompletion(status, posted);
      this.listener.connection.onFailed(reason);
    }
    this.listener.connection.onReclaimed();
    if ((slot & Slot.PROBE) !== 0) return 'absent';
    if ((slot & Slot.MARKER) !== 0) return false;
    if (status !== WcStatus.SUCCESS) return true;
    if ((slot & Slot.HIDDEN) !== 0) {
      this.ownBinds?.hide(index);
      return false;
    }
    return (slot & Slot.QUIET) === 0 ? true : 'silent';
  }

  /** WrOpcode of a request; its entry is still as it was written. */
  private posted(index: number): number {
    const { ring } = this.sends;
    return ring.words[ring.wordOf(index) + SQE.CONTROL]! & 0xff;
  }

  /** The entry's flags, and it is free; a provider that completes what is not outstanding errs. */
  private reclaim(index: number, isReceive: boolean): number {
    const { srq } = this;
    if (isReceive && srq !== undefined) {
      return srq.slots.reclaim(index) ? Slot.SIGNALLED : UNKNOWN_SLOT;
    }
    const queue = isReceive ? this.receives : this.sends;
    if (!queue.isOutstanding(index)) return UNKNOWN_SLOT;
    const flags = queue.flagsOf(index);
    queue.reclaimThrough(index);
    if ((flags & Slot.PROBE) !== 0) queue.limit--;
    return flags;
  }

  private onReceived(words: Uint32Array, at: number): void {
    const control = words[at + CQE.CONTROL] ?? 0;
    this.counters.received(control, words[at + CQE.BYTE_LENGTH] ?? 0);
    if (((control >>> 16) & WcFlags.WITH_INV) !== 0) {
      this.ownBinds?.onInvalidated(words[at + CQE.IMMEDIATE_OR_INVALIDATE] ?? 0);
    }
    this.listener.onReceived();
  }

  /** The provider says that no receive of a shared queue will complete here any more. */
  onLastReceive(): void {
    this.receivesEnded = true;
    this.listener.connection.onReclaimed();
  }

  toEvent(words: Uint32Array, at: number): DatEvent {
    return this.bindEvent(words, at) ?? dtoEvent(this.ep, words, at);
  }

  fill(batch: EventBatch, slot: number, words: Uint32Array, at: number): void {
    const bind = this.bindEvent(words, at);
    if (bind === undefined) batch.setDto(slot, this.ep, words, at);
    else batch.setEvent(slot, bind);
  }

  private bindEvent(words: Uint32Array, at: number): DatEvent | undefined {
    const isReceive = (((words[at + CQE.CONTROL] ?? 0) >>> 8) & RECEIVE_BIT) !== 0;
    return isReceive ? undefined : this.ownBinds?.eventOf(words, at);
  }

  /**
   * Moves the queue pair to ERR: what is outstanding flushes, also what waited for the doorbell.
   * @returns why not, when the device does not do it: then nothing flushes
   */
  toError(): string | undefined {
    try {
      if (this.qp.state !== QpState.ERR) this.qp.modify({ state: QpState.ERR });
      this.openSendDoorbell();
      return undefined;
    } catch (error) {
      return error instanceof Error ? error.message : String(error);
    }
  }

  /** Data has come before the CM's word: the CM may have the queue pair ready already. */
  onEstablishedByData(): void {
    if (this.qp.state === QpState.RTS) this.openSendDoorbell();
  }

  /** Ends this life, with its completions that are not dequeued. */
  destroy(purge: (context: number) => void): void {
    this.qp.destroy();
    purge(this.context);
    this.ep.core.owners.free(this.context);
    this.discard();
  }

  /**
   * Ends this life but for its completions that wait on `evds`. Those that have come must have been
   * scanned: a device may forget them with the queue pair.
   */
  retire(evds: readonly Evd[]): EpLeftovers {
    this.qp.destroy();
    this.discard();
    return new EpLeftovers(this.ep, this.context, evds, this.ownBinds);
  }

  private discard(): void {
    this.ended = true;
    this.ownBinds?.discard();
    this.sends.discard();
    this.receives.discard();
  }
}
