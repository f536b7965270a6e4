/**
 * Builds the packets of SENDs and WRITEs (IBTA 9.4, 9.8.2) in the transmit queue, straight from
 * send ring entries, and reads their payload where core wrote it: segments, or inline in the entry.
 * The requester chooses the request, the packet and the PSN.
 */
import { SQE, WrFlags } from '../../../core/spi/index.js';
import { MEMORY_CHECK } from '../memory/memory.js';
import { SegmentCursor } from '../memory/segment-cursor.js';
import { BTH_FLAG, bthPad } from '../../../core/spi/wire/bth.js';
import {
  IETH_OFFSET_OF,
  IMMDT_OFFSET_OF,
  RETH_OFFSET_OF,
  XRCETH_OFFSET_OF,
} from '../../../core/spi/wire/packet-layout.js';
import { packetOpcode, takesReceive } from '../../../core/spi/wire/request-opcodes.js';
import { writeReth, writeXrceth } from '../wire/extended-headers.js';
import type { ConnectedQueuePair } from './connection.js';

const TWO_32 = 4294967296;

export class MessagePackets {
  /** Set from the first message of several packets on. */
  private cursor: SegmentCursor | undefined = undefined;
  /** The request that `cursor` walks. */
  private cursorIndex = -1;

  constructor(private readonly qp: ConnectedQueuePair) {}

  /** Starts anew: the cursor's request may have another content now. */
  begin(): void {
    this.cursorIndex = -1;
  }

  /**
   * Packet `packet` of `packetCount` of a SEND or WRITE; false if its memory may not be read.
   * @param ackRequest BTH_FLAG.ackRequest, or 0
   */
  data(
    index: number,
    psn: number,
    packet: number,
    packetCount: number,
    lengthBytes: number,
    ackRequest: number,
  ): boolean {
    const { qp } = this;
    const { tx } = qp.hca;
    const { words } = qp.sendRing;
    const at = qp.sendRing.wordOf(index);
    const control = words[at + SQE.CONTROL]!;
    const wrOpcode = control & 0xff;
    const offset = packet * qp.mtuBytes;
    const length = Math.min(qp.mtuBytes, lengthBytes - offset);
    const last = packet + 1 === packetCount;
    const opcode = packetOpcode(wrOpcode, packet === 0, last) + qp.opcodeBase;
    const solicited = last && (control & (WrFlags.SOLICITED << 8)) !== 0;
    const se = solicited && takesReceive(wrOpcode) ? BTH_FLAG.solicited : 0;
    const flags = se | bthPad(length) | ackRequest;
    const header = tx.open(qp.peerPath.number, opcode, flags, qp.destinationQpn, psn);
    if (length > 0 && !this.addPayload(index, offset, length, packetCount === 1)) {
      tx.abort();
      return false;
    }
    if (XRCETH_OFFSET_OF[opcode] !== 0) putXrceth(qp, header, opcode, at);
    if (RETH_OFFSET_OF[opcode] !== 0) putReth(qp, header, opcode, at, 0, lengthBytes);
    const extra = IMMDT_OFFSET_OF[opcode]! + IETH_OFFSET_OF[opcode]!;
    if (extra !== 0) tx.view.setUint32(header + extra, words[at + SQE.IMMEDIATE_OR_INVALIDATE]!);
    return true;
  }

  /**
   * Adds `length` bytes from byte `offset` of the request's message to the open packet; false when
   * they may not be read.
   * @param whole these bytes are the whole message
   */
  private addPayload(index: number, offset: number, length: number, whole: boolean): boolean {
    const { hca, sendRing, domain } = this.qp;
    const at = sendRing.wordOf(index);
    const control = sendRing.words[at + SQE.CONTROL]!;
    if ((control & (WrFlags.INLINE << 8)) !== 0) {
      this.qp.addInlinePayload(index, offset, length);
      return true;
    }
    const segments = (control >>> 16) & 0xff;
    const cursor = whole ? hca.cursor : (this.cursor ??= new SegmentCursor());
    if (whole || offset === 0 || this.cursorIndex !== index) {
      cursor.start(sendRing.words, at + SQE.SEGMENTS, segments);
    }
    if (!whole) this.cursorIndex = index;
    cursor.seek(offset);
    return cursor.gather(hca.memory, domain, length, hca.tx) === MEMORY_CHECK.OK;
  }
}

/** Writes the XRCETH. @param at the request's first word in the send ring */
export function putXrceth(
  { hca, sendRing }: ConnectedQueuePair,
  header: number,
  opcode: number,
  at: number,
): void {
  const srqn = sendRing.words[at + SQE.XRC_SRQN]!;
  writeXrceth(hca.tx.view, header + XRCETH_OFFSET_OF[opcode]!, srqn);
}

/** Writes the RETH of `length` bytes from byte `offset` of the message on. */
export function putReth(
  { hca, sendRing: { words } }: ConnectedQueuePair,
  header: number,
  opcode: number,
  at: number,
  offset: number,
  length: number,
): void {
  const low = words[at + SQE.REMOTE_ADDRESS_LO]! + offset;
  const high = words[at + SQE.REMOTE_ADDRESS_HI]! + (low >= TWO_32 ? 1 : 0);
  const reth = header + RETH_OFFSET_OF[opcode]!;
  writeReth(hca.tx.view, reth, high, low >>> 0, words[at + SQE.RKEY]!, length);
}
