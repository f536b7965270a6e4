/** UC requester (IBTA 9.8.2): cuts messages into packets and hands them to the port, once. */
import {
  DEFAULT_PKEY,
  QpState,
  SQE,
  WcStatus,
  WrFlags,
  WrOpcode,
} from '../../../core/spi/index.js';
import { executeLocalOperation, isLocalOperation } from '../queue-pair/local-operations.js';
import { MAX_MESSAGE_BYTES } from '../common/parameters.js';
import { dataOpcode } from '../wire/request-opcodes.js';
import { RequestPayload } from '../queue-pair/request-payload.js';
import { segmentBytes } from '../memory/segment-cursor.js';
import type { UcQueuePair } from './queue-pair.js';
import { BTH_FLAG, writeBth } from '../wire/bth.js';
import { UC_BASE } from '../wire/opcode.js';
import { HEADER_LENGTH_OF, IMMDT_OFFSET_OF, RETH_OFFSET_OF } from '../wire/packet-layout.js';
import { PSN_MASK, psnNext } from '../wire/psn.js';
import { writeReth } from '../wire/reth.js';

/** Bits of the WrOpcodes that UC has (IBTA table 36). */
const OPCODES =
  (1 << WrOpcode.RDMA_WRITE) |
  (1 << WrOpcode.RDMA_WRITE_WITH_IMM) |
  (1 << WrOpcode.SEND) |
  (1 << WrOpcode.SEND_WITH_IMM) |
  (1 << WrOpcode.LOCAL_INV) |
  (1 << WrOpcode.BIND_MW);

export class UcRequester {
  private psn = 0;
  /** The message being sent (`fetched` is behind it once its first packet is built). */
  private sendIndex = 0;
  private packet = 0;
  private packetCount = 0;
  /** By ring slot: bytes of the message, and the number of its last packet. */
  private readonly lengthBytes: Uint32Array;
  private readonly lastPacket: Float64Array;
  private readonly payload: RequestPayload;

  constructor(private readonly qp: UcQueuePair) {
    const { entries } = qp.sendRing;
    this.lengthBytes = new Uint32Array(entries);
    this.lastPacket = new Float64Array(entries);
    this.payload = new RequestPayload(qp);
  }

  /** Entering RTS from RTR. */
  begin(sendPsn: number): void {
    this.psn = sendPsn & PSN_MASK;
  }

  /** Entering RTS: nothing is under way. */
  resume(): void {
    this.sendIndex = this.qp.fetched;
    this.packet = 0;
    this.payload.begin();
  }

  /** Sends up to `budget` packets; true when more could go at once. */
  transmit(budget: number): boolean {
    const { qp } = this;
    const segments = qp.maxSendSge + 1;
    for (let left = budget; this.ready(); left--) {
      if (left === 0 || !qp.hca.tx.hasRoom(segments)) return true;
      const status = this.sendNext();
      if (status === WcStatus.SUCCESS) continue;
      this.refuse(status);
      return false;
    }
    return false;
  }

  /** The port has taken every packet up to this number. */
  onPacketsTaken(taken: number): void {
    const { qp } = this;
    const { mask } = qp.sendRing;
    // What has been flushed is behind `oldest`, wherever `sendIndex` was.
    while (((this.sendIndex - qp.oldest) | 0) > 0 && this.lastPacket[qp.oldest & mask]! <= taken) {
      qp.completeOldest(WcStatus.SUCCESS, this.lengthBytes[qp.oldest & mask]!, 0);
    }
    qp.checkDrained();
  }

  /** SQD ends what has begun, and begins nothing. */
  private ready(): boolean {
    const { qp } = this;
    if (qp.state === QpState.SQD) return this.packet > 0;
    return qp.state === QpState.RTS && this.sendIndex !== qp.visible;
  }

  /** Begins or continues the message at `sendIndex`; a completion status. */
  private sendNext(): number {
    const { qp } = this;
    const { sendRing } = qp;
    const at = sendRing.wordOf(this.sendIndex);
    const slot = this.sendIndex & sendRing.mask;
    if (this.packet === 0) {
      const found = this.inspect(sendRing.words, at, slot);
      const status = qp.hca.sendFault?.(qp, sendRing.words[at + SQE.CONTROL]! & 0xff) ?? found;
      if (status !== WcStatus.SUCCESS) return status;
      qp.fetched = (this.sendIndex + 1) >>> 0;
      sendRing.consumer = qp.fetched;
    }
    const local = isLocalOperation(sendRing.words[at + SQE.CONTROL]! & 0xff);
    const status = local ? executeLocalOperation(qp, this.sendIndex) : this.sendPacket(at, slot);
    if (status !== WcStatus.SUCCESS) return status;
    this.packet += 1;
    if (this.packet < this.packetCount) return WcStatus.SUCCESS;
    this.lastPacket[slot] = qp.hca.tx.built;
    this.sendIndex = qp.fetched;
    this.packet = 0;
    qp.hca.awaitTaken(qp);
    return WcStatus.SUCCESS;
  }

  /** Checks a request and notes its size; a completion status. */
  private inspect(words: Uint32Array, at: number, slot: number): number {
    const control = words[at + SQE.CONTROL]!;
    const opcode = control & 0xff;
    const segments = (control >>> 16) & 0xff;
    const inline = (control & (WrFlags.INLINE << 8)) !== 0;
    const { maxSendSge, maxInlineBytes } = this.qp;
    this.packetCount = 1;
    this.lengthBytes[slot] = 0;
    if (opcode > 31 || (OPCODES & (1 << opcode)) === 0) return WcStatus.LOC_QP_OP_ERR;
    if (isLocalOperation(opcode)) return WcStatus.SUCCESS;
    if (segments > maxSendSge) return WcStatus.LOC_QP_OP_ERR;
    const length = inline
      ? words[at + SQE.INLINE_LENGTH]!
      : segmentBytes(words, at + SQE.SEGMENTS, segments);
    if (length > (inline ? maxInlineBytes : MAX_MESSAGE_BYTES)) return WcStatus.LOC_LEN_ERR;
    this.lengthBytes[slot] = length;
    this.packetCount = Math.max(1, Math.ceil(length / this.qp.mtuBytes));
    return WcStatus.SUCCESS;
  }

  private sendPacket(at: number, slot: number): number {
    const { qp, packet } = this;
    const { words } = qp.sendRing;
    const { tx } = qp.hca;
    const control = words[at + SQE.CONTROL]!;
    const wrOpcode = control & 0xff;
    const last = packet + 1 === this.packetCount;
    const offset = packet * qp.mtuBytes;
    const length = Math.min(qp.mtuBytes, this.lengthBytes[slot]! - offset);
    const opcode = dataOpcode(wrOpcode, packet === 0, last) + UC_BASE;
    const header = tx.open(qp.peerPath.number, HEADER_LENGTH_OF[opcode]!);
    if (!this.payload.add(this.sendIndex, offset, length, this.packetCount === 1)) {
      tx.abort();
      return WcStatus.LOC_PROT_ERR;
    }
    const solicited = last && (control & (WrFlags.SOLICITED << 8)) !== 0;
    const flags = solicited && wrOpcode !== WrOpcode.RDMA_WRITE ? BTH_FLAG.solicited : 0;
    const { view } = tx;
    const { destinationQpn } = qp;
    writeBth(
      view,
      header,
      opcode,
      flags,
      -length & 3,
      DEFAULT_PKEY,
      destinationQpn,
      false,
      this.psn,
    );
    if (RETH_OFFSET_OF[opcode] !== 0) {
      writeReth(
        view,
        header + RETH_OFFSET_OF[opcode]!,
        words[at + SQE.REMOTE_ADDRESS_HI]!,
        words[at + SQE.REMOTE_ADDRESS_LO]!,
        words[at + SQE.RKEY]!,
        this.lengthBytes[slot]!,
      );
    }
    const immediate = IMMDT_OFFSET_OF[opcode]!;
    if (immediate !== 0) {
      view.setUint32(header + immediate, words[at + SQE.IMMEDIATE_OR_INVALIDATE]!);
    }
    this.psn = psnNext(this.psn);
    return WcStatus.SUCCESS;
  }

  /** The request at `sendIndex` fails; what was sent before it has left our hands. */
  private refuse(status: number): void {
    this.onPacketsTaken(Infinity);
    this.qp.stopSending(status);
  }
}
