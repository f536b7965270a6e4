/**
 * RC responder (IBTA 9.7.4, in the order of checks there): PSN, opcode sequence, access flags,
 * resources, length and rkey, execution, completion, acknowledgement. Nothing is placed before all
 * checks of its packet have passed.
 */
import {
  Access,
  AsyncEventType,
  QpState,
  RQE,
  WcFlags,
  WcOpcode,
  WcStatus,
  ringEntries,
} from '../../../core/spi/index.js';
import { FLIGHT } from '../common/flight-events.js';
import { ATTRIBUTE } from '../queue-pair/kept-attributes.js';
import { MEMORY_CHECK } from '../memory/memory.js';
import { MAX_MESSAGE_BYTES } from '../common/parameters.js';
import { isAtomicOperation, permits } from './access.js';
import { RcReads } from './reads.js';
import type { RcQueuePair } from './queue-pair.js';
import { segmentCount } from '../srq/receive-source.js';
import type { ReceivedPacket } from '../common/received-packet.js';
import { ResponseQueue } from './response-queue.js';
import { SegmentCursor, segmentBytes } from '../memory/segment-cursor.js';
import { SequenceGap } from '../queue-pair/sequence-gap.js';
import { SYNDROME, rnrNakSyndrome } from '../wire/aeth-syndrome.js';
import { bthAckReq, bthSolicited } from '../wire/bth.js';
import { iethRkey } from '../wire/ieth.js';
import { immdtValue } from '../wire/immdt.js';
import { OPCODE_BIT, OPERATION } from '../wire/opcode.js';
import {
  BITS_OF,
  IETH_OFFSET_OF,
  IMMDT_OFFSET_OF,
  OPERATION_OF,
  RETH_OFFSET_OF,
  payloadLengthAllowed,
} from '../wire/packet-layout.js';
import { PSN_MASK, psnAdd, psnDiff, psnNext } from '../wire/psn.js';
import { rethDmaLength, rethRkey, rethVaHi, rethVaLo } from '../wire/reth.js';

const TWO_32 = 4294967296;
const NO_PSN = -1;
/** A message of one packet. */
const WHOLE = OPCODE_BIT.start | OPCODE_BIT.end;

/** What `admit` says of a packet in sequence. */
const REFUSED = false;

export class RcResponder {
  /** Expected PSN. */
  ePsn = 0;
  /** Messages completed, modulo 2^24. */
  msn = 0;
  readonly responses: ResponseQueue;
  /** There from the first READ or atomic on: most connections see none. */
  private ownReads: RcReads | undefined = undefined;
  /** How many of them the peer may have outstanding. */
  private depth = 0;
  /** OPERATION of the message under way, `unknown` between messages. */
  private open: number = OPERATION.unknown;
  /** PSN of the last SEND, WRITE or atomic executed: what a duplicate is answered with. */
  private ackPsn = NO_PSN;
  /** The last packet executed did not ask, and no answer since has told of it. */
  private untold = false;
  /** There from the first packet on that came too early. */
  private gap: SequenceGap | undefined = undefined;
  /** PSN of the message that was refused for want of a receive. */
  private unmetPsn = NO_PSN;
  private communicating = false;
  /** The WRITE under way: where the next byte goes, and how many are to come. */
  private writeKey = 0;
  private writeLo = 0;
  private writeHi = 0;
  private writeLeft = 0;
  /** Length of the present message, whole (WRITE) or so far (SEND). */
  private messageBytes = 0;
  private receiveCapacity = 0;
  /** Of SENDs of several packets. */
  private cursor: SegmentCursor | undefined = undefined;

  constructor(private readonly qp: RcQueuePair) {
    this.responses = new ResponseQueue(qp.memory);
  }

  /** Entering RTR. */
  begin(receivePsn: number, resources: number): void {
    this.ePsn = receivePsn & PSN_MASK;
    this.msn = 0;
    this.open = OPERATION.unknown;
    this.ackPsn = NO_PSN;
    this.untold = false;
    this.gap?.close();
    this.communicating = false;
    this.unmetPsn = NO_PSN;
    this.responses.begin(ringEntries(64 + 4 * resources));
    this.depth = resources;
    this.endReads();
  }

  /** The message that is expected next has been refused for want of a receive. */
  get lacksReceive(): boolean {
    return this.unmetPsn === this.ePsn;
  }

  get reads(): RcReads {
    return (this.ownReads ??= new RcReads(this.qp, this, this.depth));
  }

  /** Their answers are not asked for again. */
  endReads(): void {
    this.ownReads?.end();
    this.ownReads = undefined;
  }

  /** Entering RESET: nothing is owed to anybody. */
  end(): void {
    this.untold = false;
    this.responses.clear();
    this.endReads();
  }

  receive(rx: ReceivedPacket): void {
    const { drops } = this.qp.hca.counters;
    if (!this.communicating) this.onCommunication(rx.psn);
    if (this.responses.full) {
      // Our port does not get rid of what we owe already: as good as lost on the way.
      drops.backlogged += 1;
      return;
    }
    const ahead = psnDiff(rx.psn, this.ePsn);
    if (ahead > 0) this.onGap(rx.psn);
    else if (ahead < 0) this.onDuplicate(rx);
    else this.execute(rx);
  }

  private onCommunication(psn: number): void {
    const { qp } = this;
    this.communicating = true;
    if (qp.state !== QpState.RTR) return;
    qp.note(FLIGHT.COMM_EST, 0, psn);
    qp.raise(AsyncEventType.COMM_EST);
  }

  // --- out of sequence --------------------------------------------------------------------------

  /** One NAK for each time that the peer comes by the gap. */
  private onGap(psn: number): void {
    this.qp.hca.counters.drops.sequenceGap += 1;
    if ((this.gap ??= new SequenceGap()).isNews(psn)) this.sendNak(SYNDROME.nakPsnSequence);
  }

  private onDuplicate(rx: ReceivedPacket): void {
    const { counters } = this.qp.hca;
    counters.duplicateRequests += 1;
    counters.drops.duplicate += 1;
    const operation = OPERATION_OF[rx.opcode]!;
    if (operation === OPERATION.readRequest) this.reads.repeatRead(rx);
    else if (isAtomicOperation(operation)) this.reads.repeatAtomic(rx);
    else if (this.ackPsn !== NO_PSN) this.sendAck(this.ackPsn);
  }

  // --- in sequence ------------------------------------------------------------------------------

  private execute(rx: ReceivedPacket): void {
    const operation = OPERATION_OF[rx.opcode]!;
    const bits = BITS_OF[rx.opcode]!;
    this.gap?.close();
    const starts = (bits & OPCODE_BIT.start) !== 0;
    const inSequence = starts ? this.open === OPERATION.unknown : this.open === operation;
    if (
      !inSequence ||
      !permits(this.qp.memory.attribute(ATTRIBUTE.accessFlags), operation) ||
      !payloadLengthAllowed(rx.opcode, rx.payloadLength, this.qp.mtuBytes)
    ) {
      this.refuse(SYNDROME.nakInvalidRequest, WcStatus.REM_INV_REQ_ERR);
    } else if (this.qp.opcodeBase !== 0 && !this.qp.selectReceives(rx)) return;
    else if (operation === OPERATION.send) this.executeSend(rx, bits);
    else if (operation === OPERATION.write) this.executeWrite(rx, bits);
    else if (operation === OPERATION.readRequest) this.reads.executeRead(rx);
    else this.reads.executeAtomic(rx);
  }

  private executeSend(rx: ReceivedPacket, bits: number): void {
    const { qp } = this;
    const whole = (bits & WHOLE) === WHOLE;
    const cursor = whole ? this.qp.hca.cursor : (this.cursor ??= new SegmentCursor());
    if ((bits & OPCODE_BIT.start) !== 0 && !this.startSend(cursor)) return;
    if (this.messageBytes + rx.payloadLength > this.receiveCapacity) {
      this.refuse(SYNDROME.nakInvalidRequest, WcStatus.LOC_LEN_ERR);
      return;
    }
    const { memory, placements } = qp.hca;
    const verdict = cursor.scatter(
      memory,
      qp.receives.domain,
      rx.payloadLength,
      rx.payloadOffset,
      placements,
    );
    if (verdict !== MEMORY_CHECK.OK) {
      qp.hca.counters.localErrors += 1;
      this.refuse(SYNDROME.nakRemoteOperational, WcStatus.LOC_PROT_ERR);
      return;
    }
    this.messageBytes += rx.payloadLength;
    this.open = OPERATION.send;
    this.finishPacket(rx, bits, WcOpcode.RECV);
  }

  /** Takes a receive for a new SEND; false when it had to be refused. */
  private startSend(cursor: SegmentCursor): boolean {
    const { qp } = this;
    if (!qp.takeReceive()) return this.notReady();
    const { words, maxSge } = qp.receives;
    const segments = segmentCount(words, qp.receiveEntry);
    if (segments > maxSge) {
      this.refuse(SYNDROME.nakRemoteOperational, WcStatus.LOC_QP_OP_ERR);
      return false;
    }
    cursor.start(words, qp.receiveEntry + RQE.SEGMENTS, segments);
    this.receiveCapacity = segmentBytes(words, qp.receiveEntry + RQE.SEGMENTS, segments);
    this.messageBytes = 0;
    return true;
  }

  private executeWrite(rx: ReceivedPacket, bits: number): void {
    const { qp } = this;
    if ((bits & OPCODE_BIT.start) !== 0 && !this.startWrite(rx)) return;
    const last = (bits & OPCODE_BIT.end) !== 0;
    const fits = last ? rx.payloadLength === this.writeLeft : rx.payloadLength < this.writeLeft;
    if (!fits) {
      this.refuse(SYNDROME.nakInvalidRequest, WcStatus.REM_INV_REQ_ERR);
      return;
    }
    if (rx.payloadLength > 0 && !this.writable(rx.payloadLength)) return;
    if ((bits & OPCODE_BIT.receive) !== 0 && !qp.takeReceive()) {
      this.notReady();
      return;
    }
    if (rx.payloadLength > 0) {
      const { memory, placements } = qp.hca;
      placements.add(rx.payloadOffset, rx.payloadLength, memory.region, memory.offset);
    }
    const low = this.writeLo + rx.payloadLength;
    this.writeLo = low >>> 0;
    if (low >= TWO_32) this.writeHi += 1;
    this.writeLeft -= rx.payloadLength;
    this.open = OPERATION.write;
    this.finishPacket(rx, bits, WcOpcode.RECV_RDMA_WITH_IMM);
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
      this.refuse(SYNDROME.nakInvalidRequest, WcStatus.REM_INV_REQ_ERR);
      return false;
    }
    return length === 0 || this.writable(length);
  }

  /** Checks the next `length` bytes of the WRITE under way against its rkey. */
  private writable(length: number): boolean {
    const { qp } = this;
    const verdict = qp.hca.memory.checkRemote(
      qp,
      qp.remoteDomain,
      this.writeKey,
      this.writeLo,
      this.writeHi,
      length,
      Access.REMOTE_WRITE,
    );
    if (verdict === MEMORY_CHECK.OK) return true;
    this.refuse(SYNDROME.nakRemoteAccess, WcStatus.REM_ACCESS_ERR);
    return false;
  }

  /** The packet of a SEND or WRITE has been executed. */
  private finishPacket(rx: ReceivedPacket, bits: number, wcOpcode: number): void {
    const psn = this.ePsn;
    this.ackPsn = psn;
    this.ePsn = psnNext(psn);
    const last = (bits & OPCODE_BIT.end) !== 0;
    if (last) {
      this.open = OPERATION.unknown;
      this.msn = psnNext(this.msn);
    }
    if (bthAckReq(rx.view, rx.offset)) this.sendAck(psn);
    else this.untold = true;
    if (last && (bits & OPCODE_BIT.receive) !== 0) this.complete(rx, bits, wcOpcode);
  }

  private complete(rx: ReceivedPacket, bits: number, wcOpcode: number): void {
    const { qp } = this;
    let flags = bthSolicited(rx.view, rx.offset) ? WcFlags.SOLICITED : 0;
    let immediateOrKey = 0;
    if ((bits & OPCODE_BIT.invalidate) !== 0) {
      flags |= WcFlags.WITH_INV;
      immediateOrKey = iethRkey(rx.view, rx.offset + IETH_OFFSET_OF[rx.opcode]!);
      if (!qp.hca.memory.windows.invalidate(qp, immediateOrKey)) {
        // Not a window that is this peer's (IBTA 9.9.6.1, class J): the SEND itself has been done
        // and is acknowledged; the connection is over.
        qp.completeReceive(WcStatus.REM_INV_REQ_ERR, wcOpcode, 0, 0, 0, 0);
        qp.toError();
        return;
      }
    } else if ((bits & OPCODE_BIT.immediate) !== 0) {
      flags |= WcFlags.WITH_IMM;
      immediateOrKey = immdtValue(rx.view, rx.offset + IMMDT_OFFSET_OF[rx.opcode]!);
    }
    const bytes = this.messageBytes;
    qp.completeReceive(WcStatus.SUCCESS, wcOpcode, flags, bytes, immediateOrKey, qp.destinationQpn);
  }

  // --- answers ----------------------------------------------------------------------------------

  sendAck(psn: number): void {
    this.untold = false;
    this.responses.acknowledge(psn, SYNDROME.ack, this.msn);
    this.qp.hca.turns.scheduleResponses(this.qp, this.qp.acksFirst);
  }

  /** The connection ends here: the peer is to know what has arrived, asked or not. */
  tellLast(): void {
    if (this.untold) this.sendAck(this.ackPsn);
  }

  private sendNak(syndrome: number): void {
    const { qp } = this;
    this.untold = false;
    qp.note(FLIGHT.NAK_SENT, syndrome, this.ePsn);
    this.responses.nak(this.ePsn, syndrome, this.msn);
    qp.hca.turns.scheduleFirst(qp);
  }

  /** No receive is posted: RNR NAK. Always false. */
  private notReady(): boolean {
    this.qp.hca.counters.drops.noReceive += 1;
    this.unmetPsn = this.ePsn;
    this.sendNak(rnrNakSyndrome(this.qp.memory.attribute(ATTRIBUTE.minRnrTimer)));
    (this.gap ??= new SequenceGap()).open(this.ePsn);
    return REFUSED;
  }

  /** A fatal NAK: the receive in use fails, or an event tells; the connection is over. */
  refuse(syndrome: number, receiveStatus: number): void {
    const { qp } = this;
    this.sendNak(syndrome);
    this.ownReads?.repeatKept();
    const tells = qp.receiveEntry >= 0;
    if (tells) qp.completeReceive(receiveStatus, WcOpcode.RECV, 0, 0, 0, 0);
    // The receive of an XRC target is told to the owner of its queue: others hold the target.
    if (!tells || qp.receives.completionQueue) {
      const access = syndrome === SYNDROME.nakRemoteAccess;
      qp.raise(access ? AsyncEventType.QP_ACCESS_ERR : AsyncEventType.QP_REQ_ERR);
    }
    qp.toError();
  }

  /**
   * The memory of a READ went away before its responses had gone. In place of what is owed goes a
   * NAK; false in ERR, where none is needed.
   */
  revoke(psn: number): boolean {
    const { qp } = this;
    if (qp.state === QpState.ERR) return false;
    this.responses.clear();
    this.responses.nak(psn, SYNDROME.nakRemoteAccess, this.msn);
    this.ownReads?.repeatKept();
    qp.hca.turns.scheduleFirst(qp);
    qp.raise(AsyncEventType.QP_ACCESS_ERR);
    qp.toError();
    return true;
  }

  /** A READ or atomic request has been taken in: it uses `count` PSNs and is a message. */
  advance(count: number): void {
    this.untold = false;
    this.ePsn = psnAdd(this.ePsn, count);
    this.msn = psnNext(this.msn);
  }

  /** An atomic counts as executed for the answer to duplicates; a READ does not. */
  noteExecuted(psn: number): void {
    this.ackPsn = psn;
  }
}
