/**
 * Unreliable connected queue pair (IBTA 9.8.2): SEND and WRITE of any length to one peer, without
 * acknowledgement. A send completes when the port has taken its last packet; a message that loses
 * a packet never arrives.
 */
import {
  QpState,
  type QueuePairAttributes,
  type QueuePairInit,
  SQE,
  WcOpcode,
  WcStatus,
} from '../../../core/spi/index.js';
import { OPCODE_BIT, OPERATION, TRANSPORT, UC_BASE } from '../../../core/spi/wire/opcode.js';
import { BITS_OF, OPERATION_OF } from '../../../core/spi/wire/packet-layout.js';
import { isLocal, REQUEST_BIT, REQUEST_BITS } from '../../../core/spi/wire/request-opcodes.js';
import { MAX_MESSAGE_BYTES } from '../common/parameters.js';
import type { ReceivedPacket } from '../common/received-packet.js';
import { type ConnectedQueuePair, isFromPeer } from '../connected/connection.js';
import { MessagePackets } from '../connected/message-packets.js';
import { type Fault, MessageReceiver } from '../connected/message-receiver.js';
import type { Hca } from '../hca.js';
import { executeLocalOperation, SoftQueuePair, requestBytes } from '../queue-pair/queue-pair.js';
import { UnacknowledgedSends } from '../queue-pair/unacknowledged-sends.js';
import { NO_PATH, type PeerPath } from '../sending/peer-path.js';
import { PSN_MASK, psnDiff, psnNext } from '../wire/psn.js';

// UC requester (IBTA 9.8.2): cuts messages into packets and hands them to the port, once.

class UcRequester {
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

  /** Entering RTS: nothing is in flight. */
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

  /** True if a packet may be sent. SQD completes requests that have begun, and begins none. */
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
    const local = isLocal(opcode);
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
    if ((REQUEST_BITS[opcode]! & REQUEST_BIT.uc) === 0) return WcStatus.LOC_QP_OP_ERR;
    if (isLocal(opcode)) return WcStatus.SUCCESS;
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

// UC responder (IBTA 9.8.2.2): a message arrives whole or not at all. Whatever is wrong with a
// packet drops its message without a word; the receive that the message had begun to fill is the
// next one's. Only a receive that is itself bad is an error.

/**
 * A packet so far behind is a duplicate, or was overtaken: its message is over. Further behind, it
 * is ahead, after a long loss: PSNs go round.
 */
const STALE_PSNS = 1 << 16;

class UcResponder {
  /** Expected PSN. */
  private ePsn = 0;
  private readonly messages: MessageReceiver;

  constructor(private readonly qp: ConnectedQueuePair) {
    this.messages = new MessageReceiver(qp);
  }

  /** Entering RTR. */
  begin(): void {
    this.messages.begin();
    this.ePsn = this.qp.memory.receivePsn & PSN_MASK;
  }

  receive(rx: ReceivedPacket): void {
    this.messages.noteArrival(rx.psn);
    const ahead = psnDiff(rx.psn, this.ePsn);
    if (ahead < 0 && ahead >= -STALE_PSNS) {
      this.qp.hca.counters.drops.duplicate += 1;
      return;
    }
    this.ePsn = psnNext(rx.psn);
    const operation = OPERATION_OF[rx.opcode]!;
    const bits = BITS_OF[rx.opcode]!;
    // A message whose end never came makes room for the next one.
    if ((bits & OPCODE_BIT.start) !== 0 || ahead !== 0) this.abandon();
    const { messages } = this;
    const fault = messages.check(rx, operation, bits) ?? messages.execute(rx, operation, bits);
    if (fault !== undefined) this.fail(fault);
    else if ((bits & OPCODE_BIT.receive) !== 0) messages.complete(rx, operation, bits);
  }

  private fail({ drop, status }: Fault): void {
    if (drop === undefined) {
      this.qp.completeReceive(status, WcOpcode.RECV, 0, 0, 0, 0);
      this.qp.toError();
      return;
    }
    // The packet is dropped, and with it the rest of its message.
    this.qp.hca.counters.drops[drop] += 1;
    this.abandon();
  }

  /** Forgets the current message. */
  private abandon(): void {
    this.messages.open = OPERATION.unknown;
    this.qp.putBackReceive();
  }
}

export class UcQueuePair extends SoftQueuePair implements ConnectedQueuePair {
  override readonly transport = TRANSPORT.uc;
  readonly opcodeBase = UC_BASE;
  peerPath: PeerPath = NO_PATH;
  destinationQpn = 0;
  mtuBytes = 256;
  sourcePort = 0;
  private readonly requester: UcRequester;
  private readonly responder: UcResponder;

  constructor(hca: Hca, qpn: number, init: QueuePairInit) {
    super(hca, qpn, init);
    this.requester = new UcRequester(this);
    this.responder = new UcResponder(this);
  }

  override receive(rx: ReceivedPacket): void {
    if (isFromPeer(this, rx)) this.responder.receive(rx);
  }

  override transmitResponses(): boolean {
    return false;
  }

  override transmitRequests(budget: number): boolean {
    return this.requester.transmit(budget);
  }

  override onPacketsTaken(taken: number): void {
    this.requester.onPacketsTaken(taken);
  }

  protected override checkModify(to: QpState, attributes: QueuePairAttributes): void {
    super.checkModify(to, attributes);
    const { addressVector: vector } = attributes;
    if (!vector) return;
    this.peerPath = this.hca.paths.replace(this.peerPath, vector);
    this.sourcePort = vector.peer?.sourcePort ?? 0;
  }

  protected override enter(to: QpState): void {
    if (to === QpState.RESET) {
      this.peerPath = this.hca.paths.release(this.peerPath);
      this.discardQueues();
      return;
    }
    const { memory } = this;
    this.destinationQpn = memory.destinationQpn;
    this.mtuBytes = memory.pathMtuBytes || 256;
    if (to === QpState.RTR) this.responder.begin();
    if (to !== QpState.RTS) return;
    if (this.state === QpState.RTR) this.requester.begin();
    this.requester.resume();
  }

  override destroy(): void {
    if (this.destroyed) return;
    super.destroy();
    this.peerPath = this.hca.paths.release(this.peerPath);
  }
}
