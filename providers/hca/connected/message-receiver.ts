/**
 * Receives SENDs and WRITEs packet by packet, for RC and UC (IBTA 9.7.4, 9.8.2.2). Nothing is
 * placed before its packet passes all checks. A check that fails returns its fault. Each transport
 * decides the order of packets, the replies and the effect of a fault.
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
import { MAX_MESSAGE_BYTES } from '../common/parameters.js';
import type { ReceivedPacket } from '../common/received-packet.js';
import { MEMORY_CHECK } from '../memory/memory.js';
import { SegmentCursor, segmentBytes } from '../memory/segment-cursor.js';
import { segmentCount } from '../srq/receive-source.js';
import { SYNDROME } from '../wire/aeth-syndrome.js';
import { bthSolicited } from '../../../core/spi/wire/bth.js';
import {
  iethRkey,
  immdtValue,
  rethDmaLength,
  rethRkey,
  rethVaHi,
  rethVaLo,
} from '../wire/extended-headers.js';
import { OPCODE_BIT, OPERATION } from '../../../core/spi/wire/opcode.js';
import {
  IETH_OFFSET_OF,
  IMMDT_OFFSET_OF,
  RETH_OFFSET_OF,
  payloadLengthAllowed,
} from '../../../core/spi/wire/packet-layout.js';
import { permits, type ConnectedQueuePair } from './connection.js';

const TWO_32 = 4294967296;
/** A message of one packet. */
const WHOLE = OPCODE_BIT.start | OPCODE_BIT.end;

/** A fault of a request, and its effect. */
export interface Fault {
  /** RC ends the connection with this NAK, and the receive in use with this status. */
  readonly syndrome: number;
  readonly status: number;
  /**
   * UC drops the message, and counts it so. Where there is no reason, the receive itself is bad:
   * it fails with the status.
   */
  readonly drop?: DropReason;
}

const { nakInvalidRequest, nakRemoteAccess, nakRemoteOperational } = SYNDROME;
const { REM_INV_REQ_ERR, REM_ACCESS_ERR, LOC_LEN_ERR, LOC_QP_OP_ERR, LOC_PROT_ERR } = WcStatus;

// prettier-ignore
export const FAULT = {
  /** The packet does not continue the current message. */
  sequence: { syndrome: nakInvalidRequest, status: REM_INV_REQ_ERR, drop: 'sequenceGap' },
  /** The payload is not as long as its opcode, or its WRITE, says. */
  length: { syndrome: nakInvalidRequest, status: REM_INV_REQ_ERR, drop: 'badLength' },
  /** The queue pair does not let its peer do that. */
  rights: { syndrome: nakInvalidRequest, status: REM_INV_REQ_ERR, drop: 'refusedAccess' },
  /** The key does not open that memory. */
  access: { syndrome: nakRemoteAccess, status: REM_ACCESS_ERR, drop: 'refusedAccess' },
  /** The message is longer than its receive. */
  capacity: { syndrome: nakInvalidRequest, status: LOC_LEN_ERR, drop: 'bufferTooSmall' },
  /** A READ, an atomic, or the queue that an XRC message names. */
  request: { syndrome: nakInvalidRequest, status: REM_INV_REQ_ERR },
  /** No receive is posted: not an error. RC answers with an RNR NAK, UC drops the message. */
  notReady: { syndrome: 0, status: WcStatus.SUCCESS, drop: 'noReceive' },
  /** The receive, or its queue, is malformed; or its memory may not be written to. */
  receive: { syndrome: nakRemoteOperational, status: LOC_QP_OP_ERR },
  memory: { syndrome: nakRemoteOperational, status: LOC_PROT_ERR },
} as const satisfies Record<string, Fault>;

export class MessageReceiver {
  /** OPERATION of the current message, `unknown` between messages and in one that is dropped. */
  open: number = OPERATION.unknown;
  private communicating = false;
  /** The current WRITE: where the next byte goes, and how many are to come. */
  private writeKey = 0;
  private writeLo = 0;
  private writeHi = 0;
  private writeLeft = 0;
  /** Length of the present message, whole (WRITE) or so far (SEND). */
  private messageBytes = 0;
  private receiveCapacity = 0;
  /** The position in the receive, for SENDs of several packets. */
  private cursor: SegmentCursor | undefined = undefined;

  constructor(private readonly qp: ConnectedQueuePair) {}

  /** Entering RTR. */
  begin(): void {
    this.open = OPERATION.unknown;
    this.communicating = false;
  }

  /** Notes a packet of any PSN: the first one makes the connection known. */
  noteArrival(psn: number): void {
    const { qp } = this;
    if (this.communicating) return;
    this.communicating = true;
    if (qp.state !== QpState.RTR) return;
    qp.note(FLIGHT.COMM_EST, 0, psn);
    qp.raise(AsyncEventType.COMM_EST);
  }

  /** Checks that a packet in sequence is allowed for its operation. @param bits OPCODE_BIT */
  check(rx: ReceivedPacket, operation: number, bits: number): Fault | undefined {
    const { qp } = this;
    const expected = (bits & OPCODE_BIT.start) !== 0 ? OPERATION.unknown : operation;
    if (this.open !== expected) return FAULT.sequence;
    if (!payloadLengthAllowed(rx.opcode, rx.payloadLength, qp.mtuBytes)) return FAULT.length;
    return permits(qp.memory.accessFlags, rx.opcode) ? undefined : FAULT.rights;
  }

  /** Places a packet of a SEND or WRITE. */
  execute(rx: ReceivedPacket, operation: number, bits: number): Fault | undefined {
    const isSend = operation === OPERATION.send;
    const fault = isSend ? this.executeSend(rx, bits) : this.executeWrite(rx, bits);
    if (fault !== undefined) return fault;
    this.open = (bits & OPCODE_BIT.end) !== 0 ? OPERATION.unknown : operation;
    return undefined;
  }

  private executeSend(rx: ReceivedPacket, bits: number): Fault | undefined {
    const { hca, receives } = this.qp;
    const { payloadLength, payloadOffset } = rx;
    const whole = (bits & WHOLE) === WHOLE;
    const cursor = whole ? hca.cursor : (this.cursor ??= new SegmentCursor());
    if ((bits & OPCODE_BIT.start) !== 0) {
      const fault = this.startSend(cursor);
      if (fault !== undefined) return fault;
    }
    if (this.messageBytes + payloadLength > this.receiveCapacity) return FAULT.capacity;
    const { memory, placements } = hca;
    const { domain } = receives;
    const verdict = cursor.scatter(memory, domain, payloadLength, payloadOffset, placements);
    if (verdict !== MEMORY_CHECK.OK) return this.failReceive(FAULT.memory);
    this.messageBytes += payloadLength;
    return undefined;
  }

  /** Takes a receive for a new SEND. */
  private startSend(cursor: SegmentCursor): Fault | undefined {
    const { qp } = this;
    if (!this.findsReceive()) return FAULT.notReady;
    const { words, maxSge } = qp.receives;
    const segments = segmentCount(words, qp.receiveEntry);
    if (segments > maxSge) return this.failReceive(FAULT.receive);
    cursor.start(words, qp.receiveEntry + RQE.SEGMENTS, segments);
    this.receiveCapacity = segmentBytes(words, qp.receiveEntry + RQE.SEGMENTS, segments);
    this.messageBytes = 0;
    return undefined;
  }

  private findsReceive(): boolean {
    const { qp } = this;
    return qp.hca.receiveFault?.(qp) !== true && qp.takeReceive();
  }

  /** The receive in use cannot be filled: that is an error of this side. */
  private failReceive(fault: Fault): Fault {
    this.qp.hca.counters.localErrors += 1;
    return fault;
  }

  private executeWrite(rx: ReceivedPacket, bits: number): Fault | undefined {
    const { qp } = this;
    const { payloadLength, payloadOffset } = rx;
    if ((bits & OPCODE_BIT.start) !== 0) {
      const fault = this.startWrite(rx);
      if (fault !== undefined) return fault;
    }
    const last = (bits & OPCODE_BIT.end) !== 0;
    const fits = last ? payloadLength === this.writeLeft : payloadLength < this.writeLeft;
    if (!fits) return FAULT.length;
    if (payloadLength > 0 && !this.writable(payloadLength)) return FAULT.access;
    if ((bits & OPCODE_BIT.receive) !== 0 && !this.findsReceive()) return FAULT.notReady;
    if (payloadLength > 0) {
      const { memory, placements } = qp.hca;
      placements.add(payloadOffset, payloadLength, memory.region, memory.offset);
    }
    const low = this.writeLo + payloadLength;
    this.writeLo = low >>> 0;
    if (low >= TWO_32) this.writeHi += 1;
    this.writeLeft -= payloadLength;
    return undefined;
  }

  /** Checks the whole range of a new WRITE, so that nothing of a bad one is placed. */
  private startWrite(rx: ReceivedPacket): Fault | undefined {
    const reth = rx.offset + RETH_OFFSET_OF[rx.opcode]!;
    const length = rethDmaLength(rx.view, reth);
    this.writeKey = rethRkey(rx.view, reth);
    this.writeLo = rethVaLo(rx.view, reth);
    this.writeHi = rethVaHi(rx.view, reth);
    this.writeLeft = length;
    this.messageBytes = length;
    if (length > MAX_MESSAGE_BYTES) return FAULT.length;
    return length === 0 || this.writable(length) ? undefined : FAULT.access;
  }

  /** Checks the next `length` bytes of the current WRITE against its rkey. */
  private writable(length: number): boolean {
    const { qp, writeKey: key, writeLo: lo, writeHi: hi } = this;
    const { memory } = qp.hca;
    const right = Access.REMOTE_WRITE;
    const verdict = memory.checkRemote(qp, qp.remoteDomain, key, lo, hi, length, right);
    return verdict === MEMORY_CHECK.OK;
  }

  /** Completes the receive of a message whose last packet has been executed. */
  complete(rx: ReceivedPacket, operation: number, bits: number): void {
    const { qp } = this;
    const wcOpcode = operation === OPERATION.send ? WcOpcode.RECV : WcOpcode.RECV_RDMA_WITH_IMM;
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
}
