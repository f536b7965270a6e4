/**
 * RC completer (IBTA 9.7.5 to 9.7.7): the requester's handling of acknowledgements, NAKs and READ
 * and atomic responses. Packets outside una <= PSN < maxPsn are ignored as stale or ghosts.
 */
import { SQE, WcStatus } from '../../../core/spi/index.js';
import { FLIGHT } from '../common/flight-events.js';
import { MEMORY_CHECK } from '../memory/memory.js';
import type { RcQueuePair } from './queue-pair.js';
import type { ReceivedPacket } from '../common/received-packet.js';
import { SegmentCursor } from '../memory/segment-cursor.js';
import { SequenceGap } from '../queue-pair/sequence-gap.js';
import { aethSyndrome, atomicAckHi, atomicAckLo } from '../wire/extended-headers.js';
import {
  AETH_TYPE,
  NAK_CODE,
  syndromeType,
  syndromeValue,
  rnrTimerUs,
} from '../wire/aeth-syndrome.js';
import { OPCODE_BIT, OPERATION } from '../../../core/spi/wire/opcode.js';
import {
  AETH_OFFSET_OF,
  ATOMIC_ACK_ETH_OFFSET_OF,
  BITS_OF,
  OPERATION_OF,
} from '../../../core/spi/wire/packet-layout.js';
import {
  ANSWERED_BY,
  needsResponse,
  takesReceive,
} from '../../../core/spi/wire/request-opcodes.js';
import { PSN_MASK, psnAdd, psnDiff } from '../wire/psn.js';

/** NAK codes that end the connection, and the completion status that says so (IBTA 9.7.5.2). */
const FATAL_STATUS = new Map<number, number>([
  [NAK_CODE.invalidRequest, WcStatus.REM_INV_REQ_ERR],
  [NAK_CODE.remoteAccessError, WcStatus.REM_ACCESS_ERR],
  [NAK_CODE.remoteOperationalError, WcStatus.REM_OP_ERR],
  [NAK_CODE.invalidRdRequest, WcStatus.REM_INV_RD_REQ_ERR],
]);

export class RcCompleter {
  /** Set from the first response that arrives too early: one lost response causes many of them. */
  private gap: SequenceGap | undefined = undefined;
  /** A fatal NAK that came while a response before it was missing: its syndrome, and its PSN. */
  private refusal = 0;
  private refusedPsn = 0;
  /** The READ that `cursor` walks. */
  private cursorIndex = -1;
  private cursor: SegmentCursor | undefined = undefined;

  constructor(private readonly qp: RcQueuePair) {}

  reset(): void {
    this.gap?.close();
    this.refusal = 0;
    this.cursorIndex = -1;
  }

  /** A timeout starts afresh: the next hole is news again. */
  onTimeout(): void {
    this.gap?.close();
  }

  receive(rx: ReceivedPacket): void {
    const { requester, hca } = this.qp;
    if (psnDiff(rx.psn, requester.maxPsn) >= 0) hca.counters.drops.ghostAck += 1;
    else if (psnDiff(rx.psn, requester.una) < 0) this.onStale(rx);
    else if (OPERATION_OF[rx.opcode] === OPERATION.acknowledge) this.onAcknowledge(rx);
    else this.onResponse(rx);
  }

  // --- ACK and NAK ------------------------------------------------------------------------------

  private onAcknowledge(rx: ReceivedPacket): void {
    const { hca } = this.qp;
    const syndrome = aethSyndrome(rx.view, rx.offset + AETH_OFFSET_OF[rx.opcode]!);
    switch (syndromeType(syndrome)) {
      case AETH_TYPE.ack:
        hca.counters.acksReceived += 1;
        this.acknowledge(rx.psn);
        this.takeCredits(rx.psn, syndrome);
        break;
      case AETH_TYPE.rnrNak:
        hca.counters.rnrNaksReceived += 1;
        this.onRnrNak(rx.psn, syndrome);
        break;
      case AETH_TYPE.nak:
        hca.counters.naksReceived += 1;
        this.onNak(rx.psn, syndrome);
        break;
      default:
        hca.counters.drops.reservedSyndrome += 1;
    }
  }

  /** An ACK that says nothing new of packets may bring credits. */
  private onStale(rx: ReceivedPacket): void {
    const { hca } = this.qp;
    if (OPERATION_OF[rx.opcode] === OPERATION.acknowledge) {
      const syndrome = aethSyndrome(rx.view, rx.offset + AETH_OFFSET_OF[rx.opcode]!);
      const isAck = syndromeType(syndrome) === AETH_TYPE.ack;
      if (isAck && this.takeCredits(rx.psn, syndrome)) {
        hca.counters.acksReceived += 1;
        return;
      }
    }
    hca.counters.drops.staleResponse += 1;
  }

  /** Credits count from the end of a message on. True if more messages may go. */
  private takeCredits(psn: number, syndrome: number): boolean {
    const { requester, oldest, fetched, sendRing } = this.qp;
    const { una, memory } = requester;
    if (psn !== psnAdd(una, -1)) return false;
    const isEnd = oldest === fetched || memory.firstPsn(oldest & sendRing.mask) === una;
    return isEnd && requester.onCredits(syndromeValue(syndrome));
  }

  private onRnrNak(psn: number, syndrome: number): void {
    const { qp } = this;
    if (!this.acknowledgeBefore(psn)) return;
    qp.note(FLIGHT.NAK_RECEIVED, syndrome, psn);
    qp.requester.waitForReceiver(rnrTimerUs(syndromeValue(syndrome)));
  }

  private onNak(psn: number, syndrome: number): void {
    const { requester } = this.qp;
    this.qp.note(FLIGHT.NAK_RECEIVED, syndrome, psn);
    const fatal = syndromeValue(syndrome) !== NAK_CODE.psnSequenceError;
    if (fatal) {
      this.refusal = syndrome;
      this.refusedPsn = psn;
    }
    if (!this.acknowledgeBefore(psn)) return;
    if (fatal) this.failRefused();
    else if (!requester.waitingForReceiver) {
      // In RNR wait this is the echo of the packets that were in flight behind the refused one.
      requester.onMissing();
    }
  }

  /**
   * Ends what a fatal NAK has refused; false when there is no such NAK. The peer has gone to ERR
   * with it, so responses before it that are still missing never come: those requests are flushed.
   */
  failRefused(): boolean {
    const { qp, refusal, refusedPsn } = this;
    if (refusal === 0) return false;
    const { requester, sendRing } = qp;
    this.refusal = 0;
    while (qp.oldest !== qp.fetched) {
      const slot = qp.oldest & sendRing.mask;
      const end = psnAdd(requester.memory.firstPsn(slot), requester.memory.packets(slot));
      if (psnDiff(refusedPsn, end) < 0) {
        qp.failOldest(FATAL_STATUS.get(syndromeValue(refusal)) ?? WcStatus.REM_OP_ERR, refusal);
        return true;
      }
      qp.completeOldest(WcStatus.WR_FLUSH_ERR, 0, 0);
    }
    return false;
  }

  /** A NAK acknowledges all before it. False when a response among that is missing. */
  private acknowledgeBefore(psn: number): boolean {
    if (psn !== this.qp.requester.una) this.acknowledge(psnAdd(psn, -1));
    return this.qp.requester.una === psn;
  }

  /** Completes SENDs and WRITEs up to `psn`; a READ or atomic in between has lost its response. */
  private acknowledge(psn: number): void {
    const { qp } = this;
    const { requester, sendRing } = qp;
    const before = requester.una;
    let missing = false;
    while (qp.oldest !== qp.fetched) {
      const slot = qp.oldest & sendRing.mask;
      const first = requester.memory.firstPsn(slot);
      if (psnDiff(psn, first) < 0) break;
      const end = psnAdd(first, requester.memory.packets(slot));
      const opcode = sendRing.words[sendRing.wordOf(qp.oldest) + SQE.CONTROL]! & 0xff;
      if (needsResponse(opcode)) {
        missing = psnDiff(psn, end) >= 0;
        break;
      }
      if (psnDiff(psn, end) < -1) {
        requester.una = psnAdd(psn, 1);
        break;
      }
      requester.una = end;
      if (takesReceive(opcode)) requester.credits.onAcknowledged();
      qp.completeOldest(WcStatus.SUCCESS, requester.memory.lengthBytes(slot), 0);
      requester.completeLocal();
    }
    if (requester.una !== before) this.onProgress();
    if (missing) this.onMissingResponse(psn);
  }

  /** An implied NAK (IBTA 9.7.5.1.3). */
  private onMissingResponse(psn: number): void {
    const { requester, hca } = this.qp;
    hca.counters.drops.missingResponse += 1;
    if (!requester.waitingForReceiver && this.isNews(psn)) requester.onMissing();
  }

  private isNews(psn: number): boolean {
    return (this.gap ??= new SequenceGap()).isNews(psn);
  }

  private onProgress(): void {
    this.gap?.close();
    const { requester } = this.qp;
    if (this.refusal !== 0 && psnDiff(requester.una, this.refusedPsn) >= 0) this.failRefused();
    else requester.onProgress();
  }

  // --- READ and atomic responses ----------------------------------------------------------------

  private onResponse(rx: ReceivedPacket): void {
    const { qp } = this;
    const { requester, sendRing } = qp;
    if (rx.psn !== requester.una) this.acknowledge(psnAdd(rx.psn, -1));
    if (qp.oldest === qp.fetched) return;
    if (rx.psn !== requester.una) {
      this.onMissingResponse(rx.psn);
      return;
    }
    const opcode = sendRing.words[sendRing.wordOf(qp.oldest) + SQE.CONTROL]! & 0xff;
    const slot = qp.oldest & sendRing.mask;
    if (!this.acceptable(rx, opcode, slot)) {
      qp.failOldest(WcStatus.BAD_RESP_ERR, 0);
      return;
    }
    if (OPERATION_OF[rx.opcode] === OPERATION.atomicAcknowledge) this.swapAtomicResult(rx);
    this.place(rx, slot);
  }

  /** True if the response is the one expected for this PSN. */
  private acceptable(rx: ReceivedPacket, wrOpcode: number, slot: number): boolean {
    const { requester, mtuBytes } = this.qp;
    const aeth = AETH_OFFSET_OF[rx.opcode]!;
    if (aeth !== 0 && syndromeType(aethSyndrome(rx.view, rx.offset + aeth)) !== AETH_TYPE.ack) {
      return false;
    }
    const operation = OPERATION_OF[rx.opcode]!;
    if (operation !== ANSWERED_BY[wrOpcode]) return false;
    if (operation !== OPERATION.readResponse) return true;
    const packet = (rx.psn - requester.memory.firstPsn(slot)) & PSN_MASK;
    // Where a request ended before is not known any more when it is asked for again in parts.
    const final = packet + 1 === requester.memory.packets(slot);
    if (final && (BITS_OF[rx.opcode]! & OPCODE_BIT.end) === 0) return false;
    const rest = requester.memory.lengthBytes(slot) - packet * mtuBytes;
    return rx.payloadLength === Math.min(rest, mtuBytes);
  }

  /**
   * Puts the result into the byte order of memory, in the packet: it is placed like any payload.
   */
  private swapAtomicResult(rx: ReceivedPacket): void {
    const at = rx.offset + ATOMIC_ACK_ETH_OFFSET_OF[rx.opcode]!;
    const high = atomicAckHi(rx.view, at);
    const low = atomicAckLo(rx.view, at);
    rx.view.setUint32(at, low, true);
    rx.view.setUint32(at + 4, high, true);
    rx.payloadOffset = at;
    rx.payloadLength = 8;
  }

  private place(rx: ReceivedPacket, slot: number): void {
    const { qp } = this;
    const { requester, sendRing, hca } = qp;
    const packet = (rx.psn - requester.memory.firstPsn(slot)) & PSN_MASK;
    const cursor = (this.cursor ??= new SegmentCursor());
    if (packet === 0 || this.cursorIndex !== qp.oldest) {
      const at = sendRing.wordOf(qp.oldest);
      const segments = (sendRing.words[at + SQE.CONTROL]! >>> 16) & 0xff;
      cursor.start(sendRing.words, at + SQE.SEGMENTS, segments);
      this.cursorIndex = qp.oldest;
    }
    cursor.seek(packet * qp.mtuBytes);
    const { payloadLength, payloadOffset } = rx;
    const verdict = cursor.scatter(
      hca.memory,
      qp.domain,
      payloadLength,
      payloadOffset,
      hca.placements,
    );
    if (verdict !== MEMORY_CHECK.OK) {
      hca.counters.localErrors += 1;
      qp.failOldest(WcStatus.LOC_PROT_ERR, 0);
      return;
    }
    requester.una = psnAdd(rx.psn, 1);
    if (packet + 1 === requester.memory.packets(slot)) {
      this.cursorIndex = -1;
      const bytes = requester.memory.lengthBytes(slot);
      qp.completeOldest(WcStatus.SUCCESS, bytes === 0 ? payloadLength : bytes, 0);
      requester.completeLocal();
    }
    this.onProgress();
  }
}
