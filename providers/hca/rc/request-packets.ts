/**
 * Builds the packets of RC requests (IBTA 9.4) in the transmit queue, straight from send ring
 * entries. Which request, which of its packets and under which PSN is the requester's business.
 */
import { DEFAULT_PKEY, SQE, WrFlags, WrOpcode } from '../../../core/spi/index.js';
import { dataOpcode } from '../wire/request-opcodes.js';
import type { RcAckRequests } from './ack-requests.js';
import type { RcQueuePair } from './queue-pair.js';
import { RequestPayload } from '../queue-pair/request-payload.js';
import { writeAtomicEth } from '../wire/atomic-eth.js';
import { BTH_FLAG, writeBth } from '../wire/bth.js';
import { RC, XRC_BASE } from '../wire/opcode.js';
import {
  ATOMIC_ETH_OFFSET_OF,
  HEADER_LENGTH_OF,
  IETH_OFFSET_OF,
  IMMDT_OFFSET_OF,
  RETH_OFFSET_OF,
  XRCETH_OFFSET_OF,
} from '../wire/packet-layout.js';
import { writeReth } from '../wire/reth.js';
import { writeXrceth } from '../wire/xrceth.js';

const TWO_32 = 4294967296;

export class RcRequestPackets extends RequestPayload {
  constructor(
    protected override readonly qp: RcQueuePair,
    private readonly ackRequests: RcAckRequests,
  ) {
    super(qp);
  }

  /** Starts anew, with a connection or with the oldest unacknowledged packet. */
  override begin(): void {
    this.ackRequests.begin();
    super.begin();
  }

  /** Packet `packet` of `packetCount` of a SEND or WRITE; false if its memory may not be read. */
  data(
    index: number,
    psn: number,
    packet: number,
    packetCount: number,
    lengthBytes: number,
  ): boolean {
    const { qp } = this;
    const { words } = qp.sendRing;
    const at = qp.sendRing.wordOf(index);
    const control = words[at + SQE.CONTROL]!;
    const wrOpcode = control & 0xff;
    const offset = packet * qp.mtuBytes;
    const length = Math.min(qp.mtuBytes, lengthBytes - offset);
    const last = packet + 1 === packetCount;
    const opcode = dataOpcode(wrOpcode, packet === 0, last) + qp.opcodeBase;
    const header = qp.hca.tx.open(qp.path, HEADER_LENGTH_OF[opcode]!);
    if (!this.add(index, offset, length, packetCount === 1)) {
      qp.hca.tx.abort();
      return false;
    }
    // Without an ACK timer nothing would come back to what has not been acknowledged.
    const awaited =
      packetCount > 1 ||
      (control & (WrFlags.SIGNALED << 8)) !== 0 ||
      qp.memory.ackTimeoutUs === Infinity;
    const ackReq = this.ackRequests.setsAckReq(last, awaited, qp.hca);
    const solicited = last && (control & (WrFlags.SOLICITED << 8)) !== 0;
    const flags = solicited && wrOpcode !== WrOpcode.RDMA_WRITE ? BTH_FLAG.solicited : 0;
    const { view } = qp.hca.tx;
    writeBth(
      view,
      header,
      opcode,
      flags,
      -length & 3,
      DEFAULT_PKEY,
      qp.destinationQpn,
      ackReq,
      psn,
    );
    if (qp.opcodeBase === XRC_BASE) this.putXrceth(header, opcode, at);
    const reth = RETH_OFFSET_OF[opcode]!;
    if (reth !== 0) this.putReth(header + reth, at, 0, lengthBytes);
    const extra = IMMDT_OFFSET_OF[opcode]! + IETH_OFFSET_OF[opcode]!;
    if (extra !== 0) view.setUint32(header + extra, words[at + SQE.IMMEDIATE_OR_INVALIDATE]!);
    return true;
  }

  /** A READ request for `lengthBytes` from byte `offset` of the message. */
  read(index: number, psn: number, offset: number, lengthBytes: number): void {
    const { qp } = this;
    const opcode = RC.readRequest + qp.opcodeBase;
    const header = qp.hca.tx.open(qp.path, HEADER_LENGTH_OF[opcode]!);
    const { view } = qp.hca.tx;
    const at = qp.sendRing.wordOf(index);
    writeBth(view, header, opcode, 0, 0, DEFAULT_PKEY, qp.destinationQpn, true, psn);
    this.ackRequests.answered();
    if (qp.opcodeBase === XRC_BASE) this.putXrceth(header, opcode, at);
    this.putReth(header + RETH_OFFSET_OF[opcode]!, at, offset, lengthBytes);
  }

  atomic(index: number, psn: number): void {
    const { qp } = this;
    const { words } = qp.sendRing;
    const at = qp.sendRing.wordOf(index);
    const swap = (words[at + SQE.CONTROL]! & 0xff) === WrOpcode.ATOMIC_CMP_AND_SWP;
    const opcode = (swap ? RC.compareSwap : RC.fetchAdd) + qp.opcodeBase;
    const header = qp.hca.tx.open(qp.path, HEADER_LENGTH_OF[opcode]!);
    const { view } = qp.hca.tx;
    writeBth(view, header, opcode, 0, 0, DEFAULT_PKEY, qp.destinationQpn, true, psn);
    this.ackRequests.answered();
    if (qp.opcodeBase === XRC_BASE) this.putXrceth(header, opcode, at);
    writeAtomicEth(
      view,
      header + ATOMIC_ETH_OFFSET_OF[opcode]!,
      words[at + SQE.REMOTE_ADDRESS_HI]!,
      words[at + SQE.REMOTE_ADDRESS_LO]!,
      words[at + SQE.RKEY]!,
      swap ? words[at + SQE.SWAP_HI]! : words[at + SQE.COMPARE_ADD_HI]!,
      swap ? words[at + SQE.SWAP_LO]! : words[at + SQE.COMPARE_ADD_LO]!,
      swap ? words[at + SQE.COMPARE_ADD_HI]! : 0,
      swap ? words[at + SQE.COMPARE_ADD_LO]! : 0,
    );
  }

  private putXrceth(header: number, opcode: number, at: number): void {
    const srqn = this.qp.sendRing.words[at + SQE.XRC_SRQN]!;
    writeXrceth(this.qp.hca.tx.view, header + XRCETH_OFFSET_OF[opcode]!, srqn);
  }

  private putReth(reth: number, at: number, offset: number, length: number): void {
    const { words } = this.qp.sendRing;
    const low = words[at + SQE.REMOTE_ADDRESS_LO]! + offset;
    const high = words[at + SQE.REMOTE_ADDRESS_HI]! + (low >= TWO_32 ? 1 : 0);
    writeReth(this.qp.hca.tx.view, reth, high, low >>> 0, words[at + SQE.RKEY]!, length);
  }
}
