/**
 * RC requester (IBTA 9.7.3): decides which packet of which request is sent next, and when. To
 * retransmit, it starts again from the oldest unacknowledged PSN. A READ is sent in chunks, each a
 * separate READ request, so that the window bounds its responses too.
 */
import {
  PATH_MTU_BYTES,
  QpState,
  SQE,
  WcStatus,
  WrFlags,
  WrOpcode,
} from '../../../core/spi/index.js';
import { BTH_FLAG } from '../../../core/spi/wire/bth.js';
import { RC } from '../../../core/spi/wire/opcode.js';
import { ATOMIC_ETH_OFFSET_OF, XRCETH_OFFSET_OF } from '../../../core/spi/wire/packet-layout.js';
import {
  isAtomic,
  isLocal,
  isRead,
  needsResponse,
  packetOpcode,
  REQUEST_BIT,
  REQUEST_BITS,
  takesReceive,
} from '../../../core/spi/wire/request-opcodes.js';
import { FLIGHT } from '../common/flight-events.js';
import { MAX_MESSAGE_BYTES } from '../common/parameters.js';
import { MessagePackets, putReth, putXrceth } from '../connected/message-packets.js';
import { type ConnectionMemory, LOCAL } from '../queue-pair/queue-pair-memory.js';
import { executeLocalOperation, requestBytes } from '../queue-pair/queue-pair.js';
import { writeAtomicOperands, writeAtomicTarget } from '../wire/extended-headers.js';
import { PSN_MASK, psnAdd, psnDiff } from '../wire/psn.js';
import { RcAckRequests, RcPace } from './pace.js';
import { BytesInFlight, countsBytes, isHeavy, MOST_BYTES, RcCredits } from './send-limits.js';
import { RcInitiator } from './initiator.js';
import type { RcQueuePair } from './queue-pair.js';
import { RcTimers } from './timers.js';

/** How long a responder without receives is waited for before one message goes nevertheless. */
const CREDIT_WAIT_US = 20_000;

/** The packets of RC requests (IBTA 9.4): SENDs and WRITEs, READs and atomics. */
class RcRequestPackets {
  private readonly messages: MessagePackets;

  constructor(
    private readonly qp: RcQueuePair,
    private readonly ackRequests: RcAckRequests,
    private readonly credits: RcCredits,
  ) {
    this.messages = new MessagePackets(qp);
  }

  /** Starts anew, with a connection or with the oldest unacknowledged packet. */
  begin(): void {
    this.ackRequests.begin();
    this.messages.begin();
  }

  /** Packet `packet` of the SEND or WRITE in a slot; false if its memory may not be read. */
  message(index: number, psn: number, packet: number): boolean {
    const { memory, sendRing, hca } = this.qp;
    const slot = index & sendRing.mask;
    const packets = memory.packets(slot);
    const control = sendRing.words[sendRing.wordOf(index) + SQE.CONTROL]!;
    // Without an ACK timer nothing would come back to what has not been acknowledged.
    const lengthBytes = memory.lengthBytes(slot);
    const heavy = isHeavy(this.qp.mtuBytes, packets, lengthBytes);
    const awaited =
      packets > 1 ||
      heavy ||
      this.credits.isLast ||
      (control & (WrFlags.SIGNALED << 8)) !== 0 ||
      memory.ackTimeoutUs === Infinity;
    const asks = this.ackRequests.setsAckReq(heavy || packet + 1 === packets, awaited, hca);
    const ackRequest = asks ? BTH_FLAG.ackRequest : 0;
    return this.messages.data(index, psn, packet, packets, lengthBytes, ackRequest);
  }

  /** A READ request for `lengthBytes` from byte `offset` of the message. */
  read(index: number, psn: number, offset: number, lengthBytes: number): void {
    const at = this.qp.sendRing.wordOf(index);
    const opcode = RC.readRequest + this.qp.opcodeBase;
    putReth(this.qp, this.openAnswered(opcode, psn, at), opcode, at, offset, lengthBytes);
  }

  atomic(index: number, psn: number): void {
    const { hca, sendRing, opcodeBase } = this.qp;
    const { view } = hca.tx;
    const { words } = sendRing;
    const at = sendRing.wordOf(index);
    const wrOpcode = words[at + SQE.CONTROL]! & 0xff;
    const swap = wrOpcode === WrOpcode.ATOMIC_CMP_AND_SWP;
    const opcode = packetOpcode(wrOpcode, true, true) + opcodeBase;
    const eth = this.openAnswered(opcode, psn, at) + ATOMIC_ETH_OFFSET_OF[opcode]!;
    const vaHi = words[at + SQE.REMOTE_ADDRESS_HI]!;
    writeAtomicTarget(view, eth, vaHi, words[at + SQE.REMOTE_ADDRESS_LO]!, words[at + SQE.RKEY]!);
    const hi = words[at + SQE.COMPARE_ADD_HI]!;
    const lo = words[at + SQE.COMPARE_ADD_LO]!;
    if (!swap) writeAtomicOperands(view, eth, hi, lo, 0, 0);
    else writeAtomicOperands(view, eth, words[at + SQE.SWAP_HI]!, words[at + SQE.SWAP_LO]!, hi, lo);
  }

  /** Starts a request whose answer is more than an acknowledgement; where its BTH is. */
  private openAnswered(opcode: number, psn: number, at: number): number {
    const { hca, peerPath, destinationQpn } = this.qp;
    const header = hca.tx.open(peerPath.number, opcode, BTH_FLAG.ackRequest, destinationQpn, psn);
    this.ackRequests.answered();
    if (XRCETH_OFFSET_OF[opcode] !== 0) putXrceth(this.qp, header, opcode, at);
    return header;
  }
}

export class RcRequester {
  /** Next PSN to send; after going back, below `maxPsn`. */
  psn = 0;
  /** One after the highest PSN ever sent. */
  maxPsn = 0;
  /** Oldest PSN without an acknowledgement. */
  una = 0;
  /** The memory of the queue pair: requests begun, and times. */
  readonly memory: ConnectionMemory;
  retriesLeft = 0;
  rnrRetriesLeft = 0;
  readonly credits = new RcCredits();
  /** Set from the first READ or atomic on. */
  private initiator: RcInitiator | undefined = undefined;
  private mostPackets = 1;
  private readonly pace: RcPace;
  /** Bytes in flight, on a path whose packets are as long as messages. */
  private bytes: BytesInFlight | undefined = undefined;
  /** The request being sent, and the next of its packets. */
  private sendIndex = 0;
  private packet = 0;
  /** A request that cannot be sent: it fails when all before it have completed. */
  private badIndex = -1;
  private badStatus = 0;
  private readonly packets: RcRequestPackets;
  private readonly ackRequests: RcAckRequests;
  private readonly timers: RcTimers;

  constructor(private readonly qp: RcQueuePair) {
    this.memory = qp.memory;
    this.pace = new RcPace(qp.memory);
    this.timers = new RcTimers(qp, this.pace, this);
    this.ackRequests = new RcAckRequests(this.pace.window, qp.memory);
    this.packets = new RcRequestPackets(qp, this.ackRequests, this.credits);
  }

  /** Entering RTS from RTR. */
  begin(): void {
    const { hca } = this.qp;
    this.psn = this.maxPsn = this.una = this.memory.sendPsn & PSN_MASK;
    this.sendIndex = this.qp.fetched;
    this.packet = 0;
    this.badIndex = -1;
    this.initiator = undefined;
    const { windowPackets } = hca.parameters;
    const { mtuBytes } = this.qp;
    this.bytes = countsBytes(mtuBytes) ? new BytesInFlight(this.qp) : undefined;
    this.bytes?.begin();
    const counted = this.bytes ? PATH_MTU_BYTES.at(-1)! : mtuBytes;
    this.mostPackets = this.pace.begin(windowPackets, counted, this.una);
    this.packets.begin();
    this.credits.begin(this.qp.credits);
    this.timers.begin();
    this.reloadRetries();
  }

  stop(): void {
    this.timers.stop();
    this.badIndex = -1;
    // Nothing is awaited any more: whatever still comes is stale.
    this.una = this.maxPsn;
  }

  /** Something has been sent that has not been acknowledged. */
  get outstanding(): boolean {
    return this.una !== this.maxPsn;
  }

  get waitingForReceiver(): boolean {
    return this.timers.waitingForReceiver;
  }

  /** Sends up to `budget` packets; true when more could go at once. */
  transmit(budget: number): boolean {
    const { tx } = this.qp.hca;
    const segments = this.qp.maxSendSge + 1;
    const before = this.qp.fetched;
    let more = false;
    for (let left = budget; this.ready(); left--) {
      more = left === 0 || !tx.hasRoom(segments);
      if (more) break;
      this.sendNext();
    }
    if (this.qp.fetched !== before) this.qp.sendRing.consumer = this.qp.fetched;
    return more;
  }

  // --- what may go ------------------------------------------------------------------------------

  private ready(): boolean {
    const { qp } = this;
    if (this.waitingForReceiver || !(qp.state === QpState.RTS || qp.state === QpState.SQD)) {
      return false;
    }
    if (this.sendIndex === qp.fetched && !this.fetch()) return false;
    if (this.sendIndex === this.badIndex) return false;
    const inFlight = (this.psn - this.una) & PSN_MASK;
    if (inFlight >= this.pace.window.packets) return false;
    if (this.bytes?.full(this.packet, this.una)) return false;
    const control = qp.sendRing.words[qp.sendRing.wordOf(this.sendIndex) + SQE.CONTROL]!;
    const isNew = this.packet === 0 && this.psn === this.maxPsn;
    if (isNew && takesReceive(control & 0xff) && !this.mayTakeReceive()) return false;
    const fenced = this.packet === 0 && (control & (WrFlags.FENCE << 8)) !== 0;
    if (fenced && this.initiator?.idle === false) return false;
    return !needsResponse(control & 0xff) || this.mayAsk(inFlight, control & 0xff);
  }

  /**
   * Checks the credits of a message that has not been sent before. Without one, it goes when
   * nothing is in flight and the responder has been waited for: the ACK that it sends when it has
   * receives again may be lost.
   */
  private mayTakeReceive(): boolean {
    const { credits } = this;
    if (credits.open) return true;
    if (!this.outstanding) {
      credits.onWait();
      this.timers.waitForReceiver(CREDIT_WAIT_US);
    }
    return false;
  }

  /** Checks the READ and atomic depth. A chunk that does not fit the rest of the window waits. */
  private mayAsk(inFlight: number, opcode: number): boolean {
    const initiator = this.beginInitiator();
    if (initiator.full) return false;
    if (!isRead(opcode)) return true;
    const window = this.pace.window.packets;
    initiator.fit(window, this.una, this.maxPsn);
    if (inFlight === 0) return true;
    const slot = this.sendIndex & this.qp.sendRing.mask;
    return inFlight + this.chunkEnd(slot) - this.packet <= window;
  }

  /** Begins the next request that the doorbell has shown. */
  private fetch(): boolean {
    const { qp } = this;
    if (qp.fetched === qp.visible || qp.state !== QpState.RTS || this.badIndex >= 0) return false;
    const { sendRing } = qp;
    const at = sendRing.wordOf(qp.fetched);
    const slot = qp.fetched & sendRing.mask;
    const found = inspectRequest(qp, at, slot);
    const status = qp.hca.sendFault?.(qp, sendRing.words[at + SQE.CONTROL]! & 0xff) ?? found;
    this.memory.setFirstPsn(slot, this.psn);
    qp.fetched = (qp.fetched + 1) >>> 0;
    if (status === WcStatus.SUCCESS) return true;
    this.refuse(status);
    return false;
  }

  /** The request at `sendIndex` cannot go: it fails as soon as it is the oldest. */
  private refuse(status: number): void {
    this.badIndex = this.sendIndex;
    this.badStatus = status;
    this.qp.hca.counters.localErrors += 1;
    if (!this.failIfBad()) this.requestAck();
  }

  private failIfBad(): boolean {
    if (this.badIndex < 0 || this.qp.oldest !== this.badIndex) return false;
    this.qp.failOldest(this.badStatus, 0);
    return true;
  }

  // --- packets ----------------------------------------------------------------------------------

  private sendNext(): void {
    const { qp } = this;
    const { sendRing } = qp;
    const slot = this.sendIndex & sendRing.mask;
    const opcode = sendRing.words[sendRing.wordOf(this.sendIndex) + SQE.CONTROL]! & 0xff;
    let sent = 1;
    if (this.memory.local(slot) !== LOCAL.NO) {
      this.doLocally(slot);
      return;
    }
    if (isRead(opcode)) sent = this.sendRead(slot);
    else if (isAtomic(opcode)) this.sendAtomic();
    else if (!this.packets.message(this.sendIndex, this.psn, this.packet)) {
      this.refuse(WcStatus.LOC_PROT_ERR);
      return;
    }
    if (this.packet === 0 && takesReceive(opcode)) this.credits.onBegun();
    this.psn = psnAdd(this.psn, sent);
    this.packet += sent;
    if (this.packet === this.memory.packets(slot)) {
      this.bytes?.passed(this.sendIndex);
      this.sendIndex = (this.sendIndex + 1) >>> 0;
      this.packet = 0;
    }
    if (psnDiff(this.psn, this.maxPsn) > 0) this.maxPsn = this.psn;
    if (this.ackRequests.requested) {
      this.ackRequests.noteRequested(this.psn);
      this.pace.onAckRequested(this.psn, this.qp.hca.nowUs);
    }
    if (!this.timers.running) this.timers.restart();
  }

  /** Asks for one chunk; the number of PSNs that its responses use. */
  private sendRead(slot: number): number {
    const { mtuBytes } = this.qp;
    const count = this.chunkEnd(slot) - this.packet;
    const offset = this.packet * mtuBytes;
    const length = Math.min(count * mtuBytes, this.memory.lengthBytes(slot) - offset);
    this.packets.read(this.sendIndex, this.psn, offset, length);
    this.initiator?.add(psnAdd(this.psn, count));
    return count;
  }

  /** One after the last packet of the chunk to be requested. */
  private chunkEnd(slot: number): number {
    return this.beginInitiator().chunkEnd(this.packet, this.psn, this.memory.packets(slot));
  }

  private beginInitiator(): RcInitiator {
    const { maxRdAtomic } = this.memory;
    const most = this.bytes ? MOST_BYTES / this.qp.mtuBytes : this.mostPackets;
    return (this.initiator ??= new RcInitiator(most, maxRdAtomic, this.una));
  }

  private sendAtomic(): void {
    this.packets.atomic(this.sendIndex, this.psn);
    this.initiator?.add(psnAdd(this.psn, 1));
  }

  // --- local operations -------------------------------------------------------------------------

  /** Does the request at `sendIndex`, once; it completes when all before it have. */
  private doLocally(slot: number): void {
    if (this.memory.local(slot) === LOCAL.TO_DO) {
      const status = executeLocalOperation(this.qp, this.sendIndex);
      if (status !== WcStatus.SUCCESS) {
        this.refuse(status);
        return;
      }
      this.memory.setLocal(slot, LOCAL.DONE);
    }
    this.sendIndex = (this.sendIndex + 1) >>> 0;
    this.completeLocal();
    // It waits for what is before it to be acknowledged.
    this.requestAck();
    this.qp.checkDrained();
  }

  /** Completes the local operations that are the oldest requests and have been done. */
  completeLocal(): void {
    const { qp } = this;
    const { mask } = qp.sendRing;
    while (qp.oldest !== qp.fetched && this.memory.local(qp.oldest & mask) === LOCAL.DONE) {
      qp.completeOldest(WcStatus.SUCCESS, 0, 0);
    }
    this.bytes?.settle();
  }

  // --- progress and its lack --------------------------------------------------------------------

  /** The completer has moved `una`: reload what progress reloads, and go on. */
  onProgress(): void {
    const { qp } = this;
    this.bytes?.settle();
    if (psnDiff(this.una, this.psn) > 0) this.resumeAt(this.una);
    this.initiator?.retire(this.una);
    this.pace.onProgress(this.una, qp.hca);
    this.reloadRetries();
    // The peer has since accepted what the RNR NAK refused: that NAK was late or repeated.
    if (this.waitingForReceiver) this.timers.endReceiverWait();
    if (this.outstanding) this.timers.restart();
    else this.timers.pause();
    if (this.failIfBad()) return;
    qp.checkDrained();
    if (this.sendIndex !== qp.visible) qp.hca.scheduler.scheduleRequests(qp);
  }

  /**
   * Handles a loss: the peer misses the oldest packet, or we its answer; the peer has accepted none
   * that followed. The same report for the same packet is no further retry: packets that overtake
   * one another cause many reports. If the peer never answers this packet, the ACK timer, which
   * keeps running, gives up.
   */
  onMissing(): void {
    const { pace, una } = this;
    const { nowUs } = this.qp.hca;
    if (!pace.hasGoneBackTo(una)) this.retry(psnAdd(una, 1));
    else if (!pace.isEcho(nowUs)) {
      pace.onLoss(nowUs);
      this.goBack(psnAdd(una, 1));
      this.timers.restartProbe();
    }
  }

  /**
   * Goes back to the oldest unacknowledged PSN; when no retry is left, its request fails.
   * @param ambiguousEnd one after the last packet that may have arrived before
   */
  retry(ambiguousEnd: number): void {
    const { qp } = this;
    if (this.retriesLeft === 0) {
      if (qp.completer.failRefused()) return;
      qp.reports.onRetriesSpent();
      qp.failOldest(WcStatus.RETRY_EXC_ERR, 0);
      return;
    }
    this.retriesLeft -= 1;
    qp.hca.counters.retries += 1;
    qp.note(FLIGHT.RETRY, this.retriesLeft, this.una);
    this.pace.onLoss(qp.hca.nowUs);
    this.goBack(ambiguousEnd);
    this.timers.restart();
  }

  /**
   * The peer has no receive for the oldest packet: waits `delayUs` at least, then starts again from
   * it. A NAK inside that wait is for the same packet, which was in flight twice: it is no further
   * retry, but its delay has to pass too.
   */
  waitForReceiver(delayUs: number): void {
    const { qp } = this;
    if (!this.waitingForReceiver) {
      if (this.rnrRetriesLeft === 0) {
        qp.failOldest(WcStatus.RNR_RETRY_EXC_ERR, 0);
        return;
      }
      if (this.memory.rnrRetryCount !== 7) this.rnrRetriesLeft -= 1;
      this.goBack(this.maxPsn);
      this.timers.pause();
      this.credits.onWait();
    }
    this.timers.waitForReceiver(delayUs);
  }

  /** An ACK of all that has been sent tells how many receives the responder has. */
  onCredits(code: number): boolean {
    if (!this.credits.grant(code)) return false;
    if (this.waitingForReceiver) this.timers.endReceiverWait();
    this.qp.hca.scheduler.scheduleRequests(this.qp);
    return true;
  }

  private goBack(ambiguousEnd: number): void {
    this.resumeAt(this.una);
    this.packets.begin();
    this.initiator?.clear();
    this.pace.onWentBack(this.una, ambiguousEnd, this.qp.hca.nowUs);
    this.qp.hca.scheduler.scheduleRequests(this.qp);
  }

  /** `psn` lies in the oldest request, or is where the next one begins. */
  private resumeAt(psn: number): void {
    const { qp } = this;
    this.psn = psn;
    this.sendIndex = qp.oldest;
    this.bytes?.goBack();
    this.packet =
      qp.oldest === qp.fetched
        ? 0
        : (psn - this.memory.firstPsn(qp.oldest & qp.sendRing.mask)) & PSN_MASK;
    this.credits.resume(this.packet > 0 && takesReceive(this.opcodeOf(qp.oldest)) ? 1 : 0);
  }

  private opcodeOf(index: number): number {
    const { sendRing } = this.qp;
    return sendRing.words[sendRing.wordOf(index) + SQE.CONTROL]! & 0xff;
  }

  private reloadRetries(): void {
    this.retriesLeft = this.memory.retryCount;
    this.rnrRetriesLeft = this.memory.rnrRetryCount;
    this.timers.onProgress();
  }

  onAckTimeout(waitedUs: number): void {
    const { hca, completer } = this.qp;
    hca.counters.timeouts += 1;
    this.qp.note(FLIGHT.ACK_TIMEOUT, waitedUs, this.una);
    completer.onTimeout();
    if (!completer.failRefused()) this.retry(this.maxPsn);
  }

  /**
   * Sends a tail-loss probe. The peer has been silent for longer than ever before: the last packet
   * or its answer is lost, or the peer is busy. The oldest packet is sent again to find out.
   */
  sendProbe(): void {
    const { hca, completer } = this.qp;
    hca.counters.earlyRepeats += 1;
    this.pace.onSilence(this.una, psnDiff(this.maxPsn, this.una), hca.nowUs);
    this.goBack(this.maxPsn);
    completer.onTimeout();
  }

  /**
   * If all has been sent and no packet in flight requests an ACK (AckReq), sends the last packet
   * once more with a request. False if one in flight requests it already.
   */
  requestAck(): boolean {
    const { qp, memory, una } = this;
    const { mask } = qp.sendRing;
    if (this.psn !== this.maxPsn || !this.outstanding || this.ackRequests.areRequested(una))
      return false;
    do {
      this.sendIndex = (this.sendIndex - 1) >>> 0;
      this.bytes?.returnedTo(this.sendIndex);
    } while (memory.local(this.sendIndex & mask) !== LOCAL.NO);
    this.psn = psnAdd(this.maxPsn, -1);
    this.packet = memory.packets(this.sendIndex & mask) - 1;
    if (this.packet === 0 && takesReceive(this.opcodeOf(this.sendIndex))) this.credits.undo();
    this.packets.begin();
    qp.hca.scheduler.scheduleRequests(qp);
    return true;
  }
}

// The check of an RC request, before anything of it is sent.

/** Checks a request, once, and notes its size; a completion status. */
function inspectRequest(qp: RcQueuePair, at: number, slot: number): number {
  const { memory } = qp;
  const control = memory.words[at + SQE.CONTROL]!;
  const opcode = control & 0xff;
  const inline = (control & (WrFlags.INLINE << 8)) !== 0;
  const local = isLocal(opcode);
  const answered = needsResponse(opcode);
  memory.setPackets(slot, local ? 0 : 1);
  memory.setLengthBytes(slot, 0);
  memory.setLocal(slot, local ? LOCAL.TO_DO : LOCAL.NO);
  const isKnown = (REQUEST_BITS[opcode]! & REQUEST_BIT.rc) !== 0;
  if (!isKnown || (answered && (inline || memory.maxRdAtomic === 0))) {
    return WcStatus.LOC_QP_OP_ERR;
  }
  if (local) return WcStatus.SUCCESS;
  const length = requestBytes(qp, at, MAX_MESSAGE_BYTES);
  if (length < 0) return -length;
  if (isAtomic(opcode)) return length === 8 ? WcStatus.SUCCESS : WcStatus.LOC_LEN_ERR;
  memory.setPackets(slot, Math.max(1, Math.ceil(length / qp.mtuBytes)));
  memory.setLengthBytes(slot, length);
  return WcStatus.SUCCESS;
}
