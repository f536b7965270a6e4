/** UC requester (IBTA 9.8.2): cuts messages into packets and hands them to the port, once. */
import { QpState, SQE, WcStatus, WrOpcode } from '../../../core/spi/index.js';
import { MAX_MESSAGE_BYTES } from '../common/parameters.js';
import type { ConnectedQueuePair } from '../connected/connection.js';
import { MessagePackets } from '../connected/message-packets.js';
import { executeLocalOperation, isLocalOperation } from '../queue-pair/local-operations.js';
import { requestBytes } from '../queue-pair/request-bytes.js';
import { UnacknowledgedSends } from '../queue-pair/unacknowledged-sends.js';
import { PSN_MASK, psnNext } from '../wire/psn.js';

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
  private lengthBytes = 0;
  private packet = 0;
  private packetCount = 0;
  private readonly packets: MessagePackets;
  private readonly sends: UnacknowledgedSends;

  constructor(private readonly qp: ConnectedQueuePair) {
    this.packets = new MessagePackets(qp);
    this.sends = new UnacknowledgedSends(qp);
  }

  /** Entering RTS from RTR. */
  begin(): void {
    this.psn = this.qp.memory.sendPsn & PSN_MASK;
  }

  /** Entering RTS: nothing is under way. */
  resume(): void {
    this.sendIndex = this.qp.fetched;
    this.packet = 0;
    this.packets.begin();
  }

  /** Sends up to `budget` packets; true when more could go at once. */
  transmit(budget: number): boolean {
    const { qp } = this;
    const segments = qp.maxSendSge + 1;
    for (let left = budget; this.ready(); left--) {
      if (left === 0 || !qp.hca.tx.hasRoom(segments)) return true;
      const status = this.sendNext();
      if (status === WcStatus.SUCCESS) continue;
      qp.stopSending(status);
      return false;
    }
    return false;
  }

  onPacketsTaken(taken: number): void {
    this.sends.complete(taken, this.sendIndex);
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
    const opcode = sendRing.words[at + SQE.CONTROL]! & 0xff;
    if (this.packet === 0) {
      const found = this.inspect(at, opcode);
      const status = qp.hca.sendFault?.(qp, opcode) ?? found;
      if (status !== WcStatus.SUCCESS) return status;
      qp.fetched = (this.sendIndex + 1) >>> 0;
      sendRing.consumer = qp.fetched;
    }
    const local = isLocalOperation(opcode);
    const status = local ? executeLocalOperation(qp, this.sendIndex) : this.sendPacket();
    if (status !== WcStatus.SUCCESS) return status;
    this.packet += 1;
    if (this.packet < this.packetCount) return WcStatus.SUCCESS;
    this.sends.add(this.sendIndex, this.lengthBytes);
    this.sendIndex = qp.fetched;
    this.packet = 0;
    return WcStatus.SUCCESS;
  }

  /** Checks a request and notes its size; a completion status. */
  private inspect(at: number, opcode: number): number {
    const { qp } = this;
    this.packetCount = 1;
    this.lengthBytes = 0;
    if (opcode > 31 || (OPCODES & (1 << opcode)) === 0) return WcStatus.LOC_QP_OP_ERR;
    if (isLocalOperation(opcode)) return WcStatus.SUCCESS;
    const length = requestBytes(qp, at, MAX_MESSAGE_BYTES);
    if (length < 0) return -length;
    this.lengthBytes = length;
    this.packetCount = Math.max(1, Math.ceil(length / qp.mtuBytes));
    return WcStatus.SUCCESS;
  }

  private sendPacket(): number {
    const { packets, sendIndex, psn, packet, packetCount, lengthBytes } = this;
    const built = packets.data(sendIndex, psn, packet, packetCount, lengthBytes, 0);
    if (!built) return WcStatus.LOC_PROT_ERR;
    this.psn = psnNext(psn);
    return WcStatus.SUCCESS;
  }
}
