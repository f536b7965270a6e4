/**
 * Base of all queue pairs: rings, the state machine, completions and flushing. The send queue has
 * four free-running marks, oldest <= fetched <= visible <= producer: the oldest request that has
 * not completed, the next one to begin, the doorbell's.
 */
import {
  AsyncEventType,
  checkQpTransition,
  CQE,
  QpState,
  QpType,
  type QueuePair,
  type QueuePairAttributes,
  type QueuePairEventHandler,
  type QueuePairInit,
  type Ring,
  RQE,
  SpiError,
  SQE,
  WcOpcode,
  WcStatus,
  WrFlags,
  WrOpcode,
} from '../../../core/spi/index.js';
import { NO_ROW } from '../../../core/spi/internal/index.js';
import { COMPLETED_AS } from '../../../core/spi/wire/request-opcodes.js';
import { FLIGHT, flightLines } from '../common/flight-events.js';
import type { ReceivedPacket } from '../common/received-packet.js';
import type { CompletionSource, SoftCompletionQueue } from '../completions/completion-queue.js';
import type { Notifiable } from '../completions/notification-queue.js';
import type { Domain } from '../memory/domain.js';
import type { Window } from '../memory/memory-window.js';
import { OwnReceiveQueue, type ReceiveSource } from '../srq/receive-source.js';
import type { SoftSharedReceiveQueue } from '../srq/shared-receive-queue.js';
import type { SoftXrcDomain } from '../srq/xrc-domain.js';
import type { Hca } from '../hca.js';
import { checkAttributeValues } from './queue-pair-attributes.js';
import { ATTRIBUTES, QueuePairMemory } from './queue-pair-memory.js';
import { segmentBytes } from '../memory/segment-cursor.js';

/** The attributes of a queue pair, as they have been given: kept in words of its memory. */
const NAMES = Object.keys(ATTRIBUTES) as (keyof typeof ATTRIBUTES)[];

/** Keeps those that are given, each with its bit among those that have been. */
function keepAttributes(memory: QueuePairMemory, attributes: QueuePairAttributes): void {
  for (const [i, name] of NAMES.entries()) {
    if (attributes[name] === undefined) continue;
    memory.attributesGiven |= 1 << i;
    Object.assign(memory, { [name]: attributes[name] });
  }
  memory.addressVector = attributes.addressVector ?? memory.addressVector;
}

function keptAttributes(memory: QueuePairMemory): QueuePairAttributes {
  const given = NAMES.filter((_, i) => (memory.attributesGiven & (1 << i)) !== 0);
  const { addressVector } = memory;
  return {
    ...Object.fromEntries(given.map((name) => [name, memory[name]])),
    ...(addressVector && { addressVector }),
  };
}

export abstract class SoftQueuePair implements QueuePair, Notifiable, CompletionSource {
  readonly type: QpType;
  readonly isManagement: boolean;
  readonly domain: Domain;
  readonly memory: QueuePairMemory;
  readonly sendRing: Ring;
  /** The source of receives; for an XRC target, the queue that the current message names. */
  receives: ReceiveSource;
  readonly srq: SoftSharedReceiveQueue | undefined;
  /** Set on XRC queue pairs. */
  xrcDomain: SoftXrcDomain | undefined = undefined;
  private boundWindows: Set<Window> | undefined = undefined;
  private lastEvent = NO_ROW;
  readonly sendCq: SoftCompletionQueue;
  readonly receiveCq: SoftCompletionQueue;
  readonly context: number;
  /** Copied from `init`, to keep one hidden class. */
  readonly maxSendSge: number;
  readonly maxInlineBytes: number;
  state: QpState = QpState.RESET;
  eventHandler: QueuePairEventHandler;
  oldest = 0;
  fetched = 0;
  visible = 0;
  /** First word of the receive entry in use, -1 for none; and its WQE_INDEX. */
  receiveEntry = -1;
  private receiveIndex = 0;
  destroyed = false;
  /** Places in the device's round robin of responses and of requests. */
  responsesScheduled = false;
  requestsScheduled = false;
  /** The port's number for the send ring's entries, which hold inline payload; -1 before any. */
  private inlineRegion = -1;
  private drainReported = false;

  protected constructor(
    readonly hca: Hca,
    readonly qpn: number,
    init: QueuePairInit,
    receives?: ReceiveSource,
  ) {
    this.type = init.type;
    this.isManagement = init.type === QpType.GSI;
    this.domain = init.pd as Domain;
    this.sendCq = init.sendCq as SoftCompletionQueue;
    this.receiveCq = init.receiveCq as SoftCompletionQueue;
    // The consumer of an XRC target is found by the number of the shared receive queue.
    this.context = init.type === QpType.XRC_TGT ? 0 : init.context;
    this.maxSendSge = init.maxSendSge;
    this.maxInlineBytes = init.maxInlineBytes;
    this.eventHandler = init.onEvent;
    this.srq = init.srq as SoftSharedReceiveQueue | undefined;
    const others = receives ?? this.srq;
    this.memory = this.createMemory(init, others === undefined);
    const { sendRing, receiveRing } = this.memory;
    this.sendRing = sendRing;
    this.receives = others ?? new OwnReceiveQueue(receiveRing!, init.maxReceiveSge, this.domain);
  }

  /** @param receives with a receive ring of its own */
  protected createMemory(init: QueuePairInit, receives: boolean): QueuePairMemory {
    return new QueuePairMemory(this.hca.slab, init, { connected: false, receives });
  }

  /** Type 2 windows bound through it: they are open to its peer alone, and end with it. */
  get windows(): Set<Window> {
    return (this.boundWindows ??= new Set());
  }

  get receiveRing(): Ring | undefined {
    return this.receives.ownRing;
  }

  get receivesTaken(): number {
    return this.receiveEntry < 0 ? 0 : 1;
  }

  /**
   * True if its receives stay for others when it ends; it reports when it takes no more (IBTA
   * 11.5.2.2).
   */
  get sharesReceives(): boolean {
    return this.receives.srqn !== 0 || this.type === QpType.XRC_TGT;
  }

  /** The domain of remote keys. For an XRC target, it is that of the queue named by the message. */
  get remoteDomain(): Domain {
    return this.type === QpType.XRC_TGT ? this.receives.domain : this.domain;
  }

  // --- what a transport adds -------------------------------------------------------------------

  /** BTH transport codes (top 3 opcode bits) of its packets. */
  abstract readonly transport: number;
  /** A packet of the right transport, in a state that takes it. */
  abstract receive(rx: ReceivedPacket): void;
  /** Puts out up to `budget` packets; true when more could go at once. */
  abstract transmitRequests(budget: number): boolean;
  /** As `transmitRequests`, for owed responses; only a reliable transport has them. */
  transmitResponses(_budget: number): boolean {
    return false;
  }
  /** Values are checked and stored in `memory`; `state` is still the old one. */
  protected abstract enter(to: QpState): void;
  /** Stops timers and forgets messages in progress; datagrams and UC have neither. */
  protected stop(): void {}
  /** The port has taken every packet up to this number. */
  onPacketsTaken(_taken: number): void {}

  // --- verbs -----------------------------------------------------------------------------------

  ringSendDoorbell(): void {
    if (this.destroyed) return;
    const before = this.visible;
    this.visible = this.sendRing.producer;
    if (this.state === QpState.RTS) this.hca.requestsShown(this, (this.visible - before) >>> 0);
    else if (this.state === QpState.ERR || this.state === QpState.SQE) {
      this.flushSends();
      this.hca.publish();
    }
  }

  ringReceiveDoorbell(): void {
    if (this.destroyed || this.state !== QpState.ERR) return;
    this.flushReceives();
    this.hca.publish();
  }

  modify(attributes: QueuePairAttributes): void {
    if (this.destroyed) throw new SpiError('EINVAL', `queue pair ${this.qpn} is destroyed`);
    const to = checkQpTransition(this.type, this.state, attributes);
    checkAttributeValues(attributes, this.hca.limits);
    this.checkModify(to, attributes);
    if (to === QpState.RESET) this.memory.forgetAttributes();
    keepAttributes(this.memory, attributes);
    if (to === QpState.ERR) this.toError();
    else {
      const from = this.state;
      this.enter(to);
      this.setState(to);
      this.entered(to, from);
    }
    this.hca.publish();
  }

  query(): Readonly<QueuePairAttributes> {
    return { ...keptAttributes(this.memory), state: this.state, currentState: this.state };
  }

  flightRecord(): readonly string[] {
    return flightLines(this.hca.flights, this.lastEvent, this.memory.peerGid);
  }

  /** Adds an event to its flight record. @param event FLIGHT */
  note(event: number, a = 0, b = 0): void {
    const { flights, nowUs } = this.hca;
    this.lastEvent = flights.add(this.lastEvent, nowUs, event, a, b);
  }

  destroy(): void {
    if (this.destroyed) return;
    this.destroyed = true;
    this.stop();
    this.putBackReceive();
    this.unbindWindows();
    this.hca.onQueuePairDestroyed(this);
    if (this.inlineRegion >= 0) this.hca.releaseRegion(this.inlineRegion);
    this.hca.releaseMemory(this.memory);
  }

  // --- state -----------------------------------------------------------------------------------

  /** Refuses transitions that the table cannot know of. */
  protected checkModify(to: QpState, _attributes: QueuePairAttributes): void {
    const draining = this.state === QpState.SQD && this.oldest !== this.fetched;
    if (draining && (to === QpState.RTS || to === QpState.SQD)) {
      throw new SpiError('EINVAL', `SQD: ${this.fetched - this.oldest} requests still drain`);
    }
  }

  /** The new state is in force. */
  protected entered(to: QpState, from: QpState): void {
    if (to === QpState.SQD && from !== QpState.SQD) {
      this.drainReported = false;
      this.checkDrained();
    }
    if (to === QpState.RTS && this.fetched !== this.visible)
      this.hca.scheduler.scheduleRequests(this);
  }

  /** SQD: tells, once, that every request begun has completed. */
  checkDrained(): void {
    if (this.state !== QpState.SQD || this.drainReported || this.oldest !== this.fetched) return;
    this.drainReported = true;
    if (this.memory.enableSqdAsyncNotify) this.raise(AsyncEventType.SQ_DRAINED);
  }

  protected setState(to: QpState): void {
    if (to === this.state) return;
    this.note(FLIGHT.STATE, this.state, to);
    this.state = to;
  }

  /** Moves to ERR: all that is left completes as flushed, in order within each queue. */
  toError(): void {
    if (this.state === QpState.ERR) return;
    this.setState(QpState.ERR);
    this.stop();
    this.flushSends();
    this.flushReceives();
    if (this.sharesReceives) this.raise(AsyncEventType.QP_LAST_WQE_REACHED);
  }

  onCqOverrun(): void {
    if (this.state === QpState.ERR || this.state === QpState.RESET) return;
    this.note(FLIGHT.CQ_OVERRUN);
    this.toError();
  }

  /** Empties both queues without completions, and ends what the peer was granted (RESET). */
  protected discardQueues(): void {
    const producer = this.sendRing.producer;
    this.oldest = producer;
    this.fetched = producer;
    this.visible = producer;
    this.sendRing.consumer = producer;
    this.putBackReceive();
    this.receives.discard();
    this.unbindWindows();
  }

  private unbindWindows(): void {
    for (const window of this.boundWindows ?? []) window.unbind();
  }

  raise(event: AsyncEventType): void {
    this.hca.notify(this, event);
  }

  deliver(argument: number): void {
    if (!this.destroyed) this.eventHandler(argument as AsyncEventType);
  }

  // --- completions -----------------------------------------------------------------------------

  /** Completes the oldest send request: silently when it succeeded and asked for no signal. */
  completeOldest(status: number, byteLength: number, vendorError: number): void {
    const index = this.oldest;
    this.oldest = (index + 1) >>> 0;
    const words = this.sendRing.words;
    const at = this.sendRing.wordOf(index);
    const control = words[at + SQE.CONTROL]!;
    if (status === WcStatus.SUCCESS && (control & (WrFlags.SIGNALED << 8)) === 0) return;
    this.hca.counters.completions += 1;
    const { sendCq } = this;
    const of = status | (COMPLETED_AS[control & 0xff]! << 8);
    const entry = sendCq.push(this, of, index, words, at + SQE.COOKIE_LO, byteLength);
    if (entry >= 0) sendCq.ring.words[entry + CQE.VENDOR_ERROR] = vendorError;
  }

  /**
   * A bad request stops the send queue of datagrams and UC (SQE, IBTA 10.3.1.7): it fails, what
   * follows is flushed, and what was sent before it has left our hands, taken by the port or not.
   */
  stopSending(status: number): void {
    this.onPacketsTaken(Infinity);
    this.hca.counters.localErrors += 1;
    this.completeOldest(status, 0, 0);
    this.setState(QpState.SQE);
    this.flushSends();
  }

  /** The oldest send request fails, and with it the queue pair. */
  failOldest(status: number, vendorError: number): void {
    if (this.state === QpState.ERR) return;
    this.note(FLIGHT.FAILED, status, this.oldest);
    this.completeOldest(status, 0, vendorError);
    this.toError();
  }

  /** Takes the next receive entry into use; false when there is none. */
  takeReceive(): boolean {
    return this.useReceive(this.receives.take());
  }

  private useReceive(index: number): boolean {
    if (index < 0) return false;
    this.receiveIndex = index;
    this.receiveEntry = this.receives.wordOf(index);
    return true;
  }

  /** The receive entry in use is not needed after all: the next message takes it. */
  putBackReceive(): void {
    if (this.receiveEntry < 0) return;
    this.receiveEntry = -1;
    this.receives.putBack(this.receiveIndex);
  }

  /**
   * Completes the receive entry in use. A shared queue that is gone (XRC) has no completions, and
   * its entries are its owner's again.
   */
  completeReceive(
    status: number,
    opcode: number,
    flags: number,
    byteLength: number,
    immediateOrKey: number,
    sourceQpn: number,
  ): void {
    const { receives, receiveEntry: entry, receiveIndex: index } = this;
    this.receiveEntry = -1;
    if (receives.destroyed) return;
    receives.release(index);
    this.hca.counters.completions += 1;
    const cq = receives.completionQueue ?? this.receiveCq;
    const of = status | (opcode << 8) | (flags << 16);
    const at = cq.push(this, of, index, receives.words, entry + RQE.COOKIE_LO, byteLength);
    if (at < 0) return;
    const { words } = cq.ring;
    words[at + CQE.IMMEDIATE_OR_INVALIDATE] = immediateOrKey;
    words[at + CQE.SOURCE_QPN] = sourceQpn;
    words[at + CQE.SRQN] = receives.srqn;
  }

  protected flushSends(): void {
    const end = this.sendRing.producer;
    while (this.oldest !== end) this.completeOldest(WcStatus.WR_FLUSH_ERR, 0, 0);
    this.fetched = end;
    this.visible = end;
    this.sendRing.consumer = end;
  }

  /** Completes the entry in use, and those that no other queue pair can take. */
  protected flushReceives(): void {
    if (this.receiveEntry < 0) this.useReceive(this.receives.takeForFlush());
    while (this.receiveEntry >= 0) {
      this.completeReceive(WcStatus.WR_FLUSH_ERR, WcOpcode.RECV, 0, 0, 0, 0);
      this.useReceive(this.receives.takeForFlush());
    }
  }

  // --- inline payload --------------------------------------------------------------------------

  /** Adds inline payload of an entry to the open packet: `length` bytes from byte `offset` on. */
  addInlinePayload(index: number, offset: number, length: number): void {
    const { hca, sendRing } = this;
    const first = sendRing.byteOf(0);
    if (this.inlineRegion < 0) {
      const bytes = sendRing.entries * sendRing.strideBytes;
      this.inlineRegion = hca.port.addRegion(sendRing.buffer, first, bytes);
    }
    const payload = sendRing.byteOf(index) - first + SQE.SEGMENTS * 4;
    hca.tx.addSegment(this.inlineRegion, payload + offset, length);
  }
}

/**
 * Does a request that puts nothing on the wire, BIND_MW or LOCAL_INV; a completion status. Requests
 * behind it have not begun yet, so a peer that gets the new key by one of them finds the window
 * bound (IBTA 10.8.3.3).
 */
export function executeLocalOperation(qp: SoftQueuePair, index: number): number {
  const { words } = qp.sendRing;
  const at = qp.sendRing.wordOf(index);
  const { windows } = qp.hca.memory;
  if ((words[at + SQE.CONTROL]! & 0xff) === WrOpcode.LOCAL_INV) {
    const done = windows.invalidate(qp, words[at + SQE.IMMEDIATE_OR_INVALIDATE]!);
    return done ? WcStatus.SUCCESS : WcStatus.MW_BIND_ERR;
  }
  if (!windows.has(words[at + SQE.BIND_WINDOW]!)) return WcStatus.LOC_QP_OP_ERR;
  return windows.bind(qp, words, at) ? WcStatus.SUCCESS : WcStatus.MW_BIND_ERR;
}

/**
 * Bytes that the entry at word `at` of the send ring names; a negative completion status where it
 * is malformed, or too long.
 * @param mostBytes of payload that is not inline
 */
export function requestBytes(qp: SoftQueuePair, at: number, mostBytes: number): number {
  const { words } = qp.sendRing;
  const control = words[at + SQE.CONTROL]!;
  const segments = (control >>> 16) & 0xff;
  const inline = (control & (WrFlags.INLINE << 8)) !== 0;
  if (segments > qp.maxSendSge) return -WcStatus.LOC_QP_OP_ERR;
  const bytes = inline
    ? words[at + SQE.INLINE_LENGTH]!
    : segmentBytes(words, at + SQE.SEGMENTS, segments);
  return bytes > (inline ? qp.maxInlineBytes : mostBytes) ? -WcStatus.LOC_LEN_ERR : bytes;
}
