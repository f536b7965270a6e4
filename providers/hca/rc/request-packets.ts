/** The packets of RC requests (IBTA 9.4): SENDs and WRITEs of its base, READs and atomics. */
import { SQE, WrFlags, WrOpcode } from '../../../core/spi/index.js';
import type { ReliableQueuePair } from '../connected/connection.js';
import { MessagePackets } from '../connected/message-packets.js';
import { writeAtomicOperands, writeAtomicTarget } from '../wire/atomic-eth.js';
import { BTH_FLAG } from '../../../core/spi/wire/bth.js';
import { RC } from '../../../core/spi/wire/opcode.js';
import { ATOMIC_ETH_OFFSET_OF, XRCETH_OFFSET_OF } from '../../../core/spi/wire/packet-layout.js';
import type { RcAckRequests } from './ack-requests.js';
import { isHeavy } from './bytes-in-flight.js';

export class RcRequestPackets extends MessagePackets {
  constructor(
    protected override readonly qp: ReliableQueuePair,
    private readonly ackRequests: RcAckRequests,
  ) {
    super(qp);
  }

  /** Starts anew, with a connection or with the oldest unacknowledged packet. */
  override begin(): void {
    this.ackRequests.begin();
    super.begin();
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
      (control & (WrFlags.SIGNALED << 8)) !== 0 ||
      memory.ackTimeoutUs === Infinity;
    const asks = this.ackRequests.setsAckReq(heavy || packet + 1 === packets, awaited, hca);
    const ackRequest = asks ? BTH_FLAG.ackRequest : 0;
    return this.data(index, psn, packet, packets, lengthBytes, ackRequest);
  }

  /** A READ request for `lengthBytes` from byte `offset` of the message. */
  read(index: number, psn: number, offset: number, lengthBytes: number): void {
    const at = this.qp.sendRing.wordOf(index);
    const opcode = RC.readRequest + this.qp.opcodeBase;
    this.putReth(this.openAnswered(opcode, psn, at), opcode, at, offset, lengthBytes);
  }

  atomic(index: number, psn: number): void {
    const { hca, sendRing, opcodeBase } = this.qp;
    const { view } = hca.tx;
    const { words } = sendRing;
    const at = sendRing.wordOf(index);
    const swap = (words[at + SQE.CONTROL]! & 0xff) === WrOpcode.ATOMIC_CMP_AND_SWP;
    const opcode = (swap ? RC.compareSwap : RC.fetchAdd) + opcodeBase;
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
    if (XRCETH_OFFSET_OF[opcode] !== 0) this.putXrceth(header, opcode, at);
    return header;
  }
}
