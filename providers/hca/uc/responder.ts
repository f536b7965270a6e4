/**
 * UC responder (IBTA 9.8.2.2): a message arrives whole or not at all. Whatever is wrong with a
 * packet drops its message without a word; the receive that the message had begun to fill is the
 * next one's. Only a receive that is itself bad is an error.
 */
import {
  Access,
  AsyncEventType,
  QpState,
  RQE,
  WcFlags,
  WcOpcode,
  WcStatus,
} from '../../../core/spi/index.js';
import type { DropReason } from '../common/counters.js';
import { FLIGHT } from '../common/flight-events.js';
import { ATTRIBUTE } from '../queue-pair/kept-attributes.js';
import { MEMORY_CHECK } from '../memory/memory.js';
import { MAX_MESSAGE_BYTES } from '../common/parameters.js';
import { segmentCount } from '../srq/receive-source.js';
import type { ReceivedPacket } from '../common/received-packet.js';
import { SegmentCursor, segmentBytes } from '../memory/segment-cursor.js';
import type { UcQueuePair } from './queue-pair.js';
import { bthSolicited } from '../wire/bth.js';
import { immdtValue } from '../wire/immdt.js';
import { OPCODE_BIT, OPERATION } from '../wire/opcode.js';
import {
  BITS_OF,
  IMMDT_OFFSET_OF,
  OPERATION_OF,
  RETH_OFFSET_OF,
  payloadLengthAllowed,
} from '../wire/packet-layout.js';
import { PSN_MASK, psnDiff, psnNext } from '../wire/psn.js';
import { rethDmaLength, rethRkey, rethVaHi, rethVaLo } from '../wire/reth.js';

const TWO_32 = 4294967296;
/**
 * A packet so far behind is a duplicate, or was overtaken: its message is over. Further behind, it
 * is ahead, after a long loss: PSNs go round.
 */
const STALE_PSNS = 1 << 16;

export class UcResponder {
  /** Expected PSN. */
  private ePsn = 0;
  /** OPERATION of the message under way, `unknown` between messages and in one that is dropped. */
  private open: number = OPERATION.unknown;
  private communicating = false;
  /** The WRITE under way: where the next byte goes, and how many are to come. */
  private writeKey = 0;
  private writeLo = 0;
  private writeHi = 0;
  private writeLeft = 0;
  /** Length of the present message, whole (WRITE) or so far (SEND). */
  private messageBytes = 0;
  private receiveCapacity = 0;
  private readonly cursor = new SegmentCursor();

  constructor(private readonly qp: UcQueuePair) {}

  /** Entering RTR. */
  begin(receivePsn: number): void {
    this.ePsn = receivePsn & PSN_MASK;
    this.open = OPERATION.unknown;
    this.communicating = false;
  }

  receive(rx: ReceivedPacket): void {
    if (!this.communicating) this.onCommunication(rx.psn);
    const ahead = psnDiff(rx.psn, this.ePsn);
    if (ahead < 0 && ahead >= -STALE_PSNS) {
      this.qp.hca.counters.drops.duplicate += 1;
      return;
    }
    this.ePsn = psnNext(rx.psn);
    const operation = OPERATION_OF[rx.opcode]!;
    const bits = BITS_OF[rx.opcode]!;
    const starts = (bits & OPCODE_BIT.start) !== 0;
    // A message whose end never came makes room for the next one.
    if (starts || ahead !== 0) this.abandon();
    if (!starts && this.open !== operation) this.drop('sequenceGap');
    else if (!payloadLengthAllowed(rx.opcode, rx.payloadLength, this.qp.mtuBytes)) {
      this.drop('badLength');
    } else if (operation === OPERATION.send) this.executeSend(rx, bits);
    else this.executeWrite(rx, bits);
  }

  private onCommunication(psn: number): void {
    const { qp } = this;
    this.communicating = true;
    if (qp.state !== QpState.RTR) return;
    qp.note(FLIGHT.COMM_EST, 0, psn);
    qp.raise(AsyncEventType.COMM_EST);
  }

  /** Forgets the message under way. */
  private abandon(): void {
    this.open = OPERATION.unknown;
    this.qp.putBackReceive();
  }

  /** Drops a packet, and with it the rest of its message. */
  private drop(reason: DropReason): void {
    this.qp.hca.counters.drops[reason] += 1;
    this.abandon();
  }

  // --- SEND -------------------------------------------------------------------------------------

  private executeSend(rx: ReceivedPacket, bits: number): void {
    const { qp } = this;
    if ((bits & OPCODE_BIT.start) !== 0 && !this.startSend()) return;
    if (this.messageBytes + rx.payloadLength > this.receiveCapacity) {
      this.drop('bufferTooSmall');
      return;
    }
    const { memory, placements } = qp.hca;
    const { domain } = qp.receives;
    const { payloadLength, payloadOffset } = rx;
    const verdict = this.cursor.scatter(memory, domain, payloadLength, payloadOffset, placements);
    if (verdict !== MEMORY_CHECK.OK) {
      this.failReceive(WcStatus.LOC_PROT_ERR);
      return;
    }
    this.messageBytes += payloadLength;
    this.open = OPERATION.send;
    if ((bits & OPCODE_BIT.end) !== 0) this.complete(rx, bits, WcOpcode.RECV);
  }

  /** Takes a receive for a new SEND; false when there is none, or none that is good. */
  private startSend(): boolean {
    const { qp } = this;
    if (!qp.takeReceive()) {
      this.drop('noReceive');
      return false;
    }
    const { words, maxSge } = qp.receives;
    const segments = segmentCount(words, qp.receiveEntry);
    if (segments > maxSge) {
      this.failReceive(WcStatus.LOC_QP_OP_ERR);
      return false;
    }
    this.cursor.start(words, qp.receiveEntry + RQE.SEGMENTS, segments);
    this.receiveCapacity = segmentBytes(words, qp.receiveEntry + RQE.SEGMENTS, segments);
    this.messageBytes = 0;
    return true;
  }

  // --- WRITE ------------------------------------------------------------------------------------

  private executeWrite(rx: ReceivedPacket, bits: number): void {
    const { qp } = this;
    const { payloadLength, payloadOffset } = rx;
    if ((bits & OPCODE_BIT.start) !== 0 && !this.startWrite(rx)) return;
    const last = (bits & OPCODE_BIT.end) !== 0;
    const fits = last ? payloadLength === this.writeLeft : payloadLength < this.writeLeft;
    if (!fits) {
      this.drop('badLength');
      return;
    }
    if (payloadLength > 0 && !this.writable(payloadLength)) return;
    if ((bits & OPCODE_BIT.receive) !== 0 && !qp.takeReceive()) {
      this.drop('noReceive');
      return;
    }
    if (payloadLength > 0) {
      const { memory, placements } = qp.hca;
      placements.add(payloadOffset, payloadLength, memory.region, memory.offset);
    }
    const low = this.writeLo + payloadLength;
    this.writeLo = low >>> 0;
    if (low >= TWO_32) this.writeHi += 1;
    this.writeLeft -= payloadLength;
    this.open = OPERATION.write;
    if (last) this.complete(rx, bits, WcOpcode.RECV_RDMA_WITH_IMM);
  }

  /** Checks the whole range of a new WRITE, so that nothing of a bad one is placed. */
  private startWrite(rx: ReceivedPacket): boolean {
    const reth = rx.offset + RETH_OFFSET_OF[rx.opcode]!;
    const length = rethDmaLength(rx.view, reth);
    this.writeKey = rethRkey(rx.view, reth);
    this.writeLo = rethVaLo(rx.view, reth);
    this.writeHi = rethVaHi(rx.view, reth);
    this.writeLeft = length;
    this.messageBytes = length;
    if (length > MAX_MESSAGE_BYTES) {
      this.drop('badLength');
      return false;
    }
    if ((this.qp.memory.attribute(ATTRIBUTE.accessFlags) & Access.REMOTE_WRITE) === 0) {
      this.drop('refusedAccess');
      return false;
    }
    return length === 0 || this.writable(length);
  }

  /** Checks the next `length` bytes of the WRITE under way against its rkey. */
  private writable(length: number): boolean {
    const { qp, writeKey: key, writeLo: lo, writeHi: hi } = this;
    const { memory } = qp.hca;
    const right = Access.REMOTE_WRITE;
    const verdict = memory.checkRemote(qp, qp.domain, key, lo, hi, length, right);
    if (verdict === MEMORY_CHECK.OK) return true;
    this.drop('refusedAccess');
    return false;
  }

  // --- receives ---------------------------------------------------------------------------------

  private complete(rx: ReceivedPacket, bits: number, wcOpcode: number): void {
    const { qp } = this;
    this.open = OPERATION.unknown;
    if ((bits & OPCODE_BIT.receive) === 0) return;
    let flags = bthSolicited(rx.view, rx.offset) ? WcFlags.SOLICITED : 0;
    let immediate = 0;
    if ((bits & OPCODE_BIT.immediate) !== 0) {
      flags |= WcFlags.WITH_IMM;
      immediate = immdtValue(rx.view, rx.offset + IMMDT_OFFSET_OF[rx.opcode]!);
    }
    const bytes = this.messageBytes;
    qp.completeReceive(WcStatus.SUCCESS, wcOpcode, flags, bytes, immediate, qp.destinationQpn);
  }

  /** The receive in use cannot be filled: that is an error of this side. */
  private failReceive(status: number): void {
    const { qp } = this;
    qp.hca.counters.localErrors += 1;
    qp.completeReceive(status, WcOpcode.RECV, 0, 0, 0, 0);
    qp.toError();
  }
}
