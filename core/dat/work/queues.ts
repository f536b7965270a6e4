/**
 * The queues of an endpoint's queue pair: writes requests and receives as words of the rings, and
 * processes their completions. `ep.reset()` ends them and creates others with a fresh queue pair
 * number, so that a late completion is never taken for a new one.
 */
import type {
  CompletionOwner,
  CompletionOwners,
  CompletionView,
  DatEvent,
  Evd,
  EventBatch,
} from '../../evd/index.js';
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
  SQE,
  WcFlags,
  WcStatus,
  WrFlags,
  WrOpcode,
  type XrcDomain,
} from '../../spi/index.js';
import { dtoEvent, isReceive } from '../common/dto-event.js';
import type { RemoteSegment, Segments } from '../memory/segment.js';
import { type EpQueueAttributes, ownRequests, sendIov } from './attributes.js';
import { EpBinds } from './binds.js';
import { causeOfCompletion, unansweredProbe } from './break-causes.js';
import type { EpCounters } from './counters.js';
import { EntryFlag } from './entry-ring.js';
import { QueueSet, UNKNOWN_SLOT } from './queue-set.js';
import type { RequestSpec } from './request-specs.js';
import type { EndpointState } from '../endpoint/endpoint-state.js';
import type { Ep } from '../endpoint/ep.js';
import type { Srq } from '../srq/srq.js';

const U32 = 2 ** 32;

export class EpQueues extends QueueSet<Ep> {
  readonly counters: EpCounters;
  /** QP_LAST_WQE_REACHED: no receive of a shared receive queue will complete here any more. */
  receivesEnded: boolean;
  /** XRC: the peer's shared receive queue that later requests name. */
  srqn = 0;
  /** Source of its receives. */
  private readonly srq: Srq | undefined;
  /** Created for the first bind of a window. */
  private ownBinds: EpBinds | undefined = undefined;
  private readonly record: EndpointState;

  /**
   * Creates the queue pair and takes it to INIT. Until the connection is established, requests wait
   * in the ring.
   * @throws SpiError, or DatError when there are no completion contexts left
   */
  constructor(init: EpQueuesInit) {
    const { ep, owners, attributes } = init;
    super(ep, owners, attributes, sendIov(attributes), false, (context) =>
      endpointQueuePair(init, context),
    );
    this.srq = init.srq;
    this.record = init.record;
    this.counters = init.counters;
    this.receivesEnded = init.srq === undefined;
  }

  /** Pending binds of windows. */
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
    const { words } = this.sends.ring;
    const at = this.sends.nextWord;
    words[at + SQE.REMOTE_ADDRESS_LO] = remote.addressLo;
    words[at + SQE.REMOTE_ADDRESS_HI] = remote.addressHi;
    words[at + SQE.RKEY] = remote.rmrContext;
    words[at + SQE.XRC_SRQN] = this.srqn;
    this.commitSend(request.opcode, request.slot, segments, cookie, flags, word);
  }

  /** The operands of the next atomic: two pairs of words, low word first. */
  putOperands(operands: Uint32Array): void {
    const { sends } = this;
    sends.ring.words.set(operands, sends.nextWord + SQE.COMPARE_ADD_LO);
  }

  /**
   * A number that changes when the peer has done, or acknowledged, something. Completions count
   * once they are scanned.
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
   * An empty RDMA write, signalled and hidden, in the entry reserved for it. Its completion means
   * that every request before it has ended, also those without a completion.
   */
  postMarker(): void {
    this.postEmpty(EntryFlag.MARKER);
  }

  /**
   * An empty RDMA write in an entry beside the consumer's own: the peer answers, or the queue pair
   * fails. At most one is in flight.
   */
  postProbe(): void {
    this.sends.limit++;
    this.postEmpty(EntryFlag.PROBE);
  }

  private postEmpty(flag: number): void {
    this.putPlain(
      WrOpcode.RDMA_WRITE,
      WrFlags.SIGNALED,
      EntryFlag.HIDDEN | EntryFlag.SIGNALLED | flag,
      0,
    );
    this.ringSends();
  }

  /**
   * Writes a request without segments.
   * @param wrFlags WrFlags
   * @param operands its words from REMOTE_ADDRESS_LO on
   */
  putPlain(
    opcode: number,
    wrFlags: number,
    slotFlags: number,
    cookie: number,
    invalidate = 0,
    operands?: Uint32Array,
  ): void {
    const { sends } = this;
    const { words } = sends.ring;
    const at = sends.nextWord;
    words.fill(0, at, at + SQE.SEGMENTS);
    words[at + SQE.CONTROL] = opcode | (wrFlags << 8);
    words[at + SQE.COOKIE_LO] = cookie >>> 0;
    words[at + SQE.COOKIE_HI] = Math.floor(cookie / U32);
    words[at + SQE.IMMEDIATE_OR_INVALIDATE] = invalidate;
    words[at + SQE.XRC_SRQN] = this.srqn;
    if (operands !== undefined) words.set(operands, at + SQE.REMOTE_ADDRESS_LO);
    sends.commit(slotFlags);
  }

  /** Processes a completion as it is scanned. */
  onCompletion(words: Uint32Array, at: number): CompletionView {
    const control = words[at + CQE.CONTROL] ?? 0;
    const status = control & 0xff;
    const received = isReceive(control);
    const index = words[at + CQE.WQE_INDEX] ?? 0;
    const slot = this.reclaim(index, received);
    if (slot === UNKNOWN_SLOT) return false;
    if (!received) this.ownBinds?.onCompletion(index, status);
    // Verbs does not tell a write with immediate data from one without.
    if ((slot & EntryFlag.IMMEDIATE) !== 0)
      words[at + CQE.CONTROL] = control | (WcFlags.WITH_IMM << 16);
    if (status === WcStatus.SUCCESS) {
      if (received) this.onReceived(words, at);
    } else if (status !== WcStatus.WR_FLUSH_ERR) {
      const isProbe = (slot & EntryFlag.PROBE) !== 0;
      const posted = received ? undefined : this.posted(index);
      const reason = isProbe
        ? unansweredProbe(status)
        : causeOfCompletion(status, posted, this.srqn !== 0);
      this.record.connection.onFailed(reason);
    }
    this.record.connection.onReclaimed();
    if ((slot & EntryFlag.PROBE) !== 0) return 'absent';
    if ((slot & EntryFlag.MARKER) !== 0) return false;
    if (status !== WcStatus.SUCCESS) return true;
    if ((slot & EntryFlag.HIDDEN) !== 0) {
      this.ownBinds?.hide(index);
      return false;
    }
    return (slot & EntryFlag.QUIET) === 0 ? true : 'silent';
  }

  /** WrOpcode of a request, whose entry is still intact. */
  private posted(index: number): number {
    const { ring } = this.sends;
    return ring.words[ring.wordOf(index) + SQE.CONTROL]! & 0xff;
  }

  protected override reclaim(index: number, isReceive: boolean): number {
    const { srq } = this;
    if (isReceive && srq !== undefined) {
      return srq.slots.reclaim(index) ? EntryFlag.SIGNALLED : UNKNOWN_SLOT;
    }
    const flags = super.reclaim(index, isReceive);
    if (flags !== UNKNOWN_SLOT && (flags & EntryFlag.PROBE) !== 0) this.sends.limit--;
    return flags;
  }

  private onReceived(words: Uint32Array, at: number): void {
    const control = words[at + CQE.CONTROL] ?? 0;
    this.counters.received(control, words[at + CQE.BYTE_LENGTH] ?? 0);
    if (((control >>> 16) & WcFlags.WITH_INV) !== 0) {
      this.ownBinds?.onInvalidated(words[at + CQE.IMMEDIATE_OR_INVALIDATE] ?? 0);
    }
    this.record.onReceived();
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
    const { ownBinds } = this;
    return isReceive(words[at + CQE.CONTROL] ?? 0) ? undefined : ownBinds?.eventOf(words, at);
  }

  /** Data has arrived before the CM's report: the CM may have the queue pair ready already. */
  onEstablishedByData(): void {
    if (this.qp.state === QpState.RTS) this.openSendDoorbell();
  }

  /**
   * Ends the queues, except for their completions on `evds`. Those must have been scanned: a device
   * may drop them with the queue pair.
   */
  retire(evds: readonly Evd[]): RetiredCompletions {
    this.qp.destroy();
    this.discard();
    return new RetiredCompletions(this.ep, this.context, evds, this.ownBinds);
  }

  protected override discard(): void {
    this.ownBinds?.discard();
    super.discard();
  }
}

/** Parameters of one queue pair of an endpoint: a reset makes another. */
export interface EpQueuesInit {
  /** The endpoint, named in completions. */
  readonly ep: Ep;
  readonly device: Device;
  readonly owners: CompletionOwners;
  readonly pd: ProtectionDomain;
  readonly requestCq: CompletionQueue;
  readonly recvCq: CompletionQueue;
  readonly attributes: EpQueueAttributes;
  /** Source of receives, in place of a queue of the endpoint's own. */
  readonly srq: Srq | undefined;
  /** For an XRC initiator: creates the queue pair, which has no receives. */
  readonly xrc: XrcDomain | undefined;
  readonly counters: EpCounters;
  readonly onQueuePairEvent: (event: AsyncEventType) => void;
  readonly record: EndpointState;
}

// Creates the queue pair of an endpoint: plain, on a shared receive queue, or an initiator.

/** Operations that peers may use on the queue pair; each memory region decides what they reach. */
export const EP_ACCESS =
  Access.LOCAL_WRITE | Access.REMOTE_WRITE | Access.REMOTE_READ | Access.REMOTE_ATOMIC;

/**
 * Creates it and takes it to INIT.
 * @throws SpiError
 */
export function endpointQueuePair(init: EpQueuesInit, context: number): QueuePair {
  const { device, attributes, pd, requestCq, recvCq, srq, xrc, onQueuePairEvent } = init;
  const sending = {
    pd,
    sendCq: requestCq,
    // The marker that ends the queue takes the last entry, and a keep-alive's probe the one before.
    maxSendWr: attributes.maxRequestDtos + ownRequests(attributes),
    maxSendSge: sendIov(attributes),
    maxInlineBytes: 0,
    context,
    onEvent: onQueuePairEvent,
  };
  const qp =
    xrc?.createInitiator(sending) ??
    device.createQueuePair({
      ...sending,
      type: QpType.RC,
      receiveCq: recvCq,
      ...(srq !== undefined && { srq: srq.queue }),
      maxReceiveWr: attributes.maxRecvDtos,
      maxReceiveSge: attributes.maxRecvIov,
    });
  const { portNumber } = device.attributes;
  try {
    qp.modify({ state: QpState.INIT, pkeyIndex: 0, portNumber, accessFlags: EP_ACCESS });
  } catch (error) {
    qp.destroy();
    throw error;
  }
  return qp;
}

// Completions of queues that `ep.reset()` has ended. They stay on their event dispatchers until
// the consumer takes them, though the queue pair and its rings are destroyed.

export class RetiredCompletions implements CompletionOwner {
  /** Completions not taken yet. */
  private left = 0;

  /**
   * @param context of the completions: reserved until the last is taken
   * @param evds where they are queued; all have been scanned
   * @param binds completed binds that are not dequeued
   */
  constructor(
    private readonly ep: Ep,
    private readonly context: number,
    private readonly evds: readonly Evd[],
    private readonly binds: EpBinds | undefined,
  ) {
    for (const evd of evds) this.left += evd.feed.left(context);
    if (this.left === 0) this.end();
    else ep.core.owners.replace(context, this);
  }

  /** True if the consumer has taken all of them, or their event dispatchers were freed. */
  get isOver(): boolean {
    return this.left === 0 || this.evds.every((evd) => evd.isFreed);
  }

  /** The queue pair is destroyed: only frees the slot of a shared queue's receive. */
  onCompletion(words: Uint32Array, at: number): CompletionView {
    if (isReceive(words[at + CQE.CONTROL] ?? 0))
      this.ep.srq?.slots.reclaim(words[at + CQE.WQE_INDEX] ?? 0);
    return false;
  }

  toEvent(words: Uint32Array, at: number): DatEvent {
    if (--this.left === 0) this.end();
    const bind = isReceive(words[at + CQE.CONTROL] ?? 0)
      ? undefined
      : this.binds?.eventOf(words, at);
    return bind ?? dtoEvent(this.ep, words, at);
  }

  /** The endpoint is freed: drops the completions not taken. */
  drop(): void {
    for (const evd of this.evds) evd.feed.purge(this.context);
    this.end();
  }

  private end(): void {
    this.ep.core.owners.free(this.context);
  }
}
