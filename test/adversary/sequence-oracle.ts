/**
 * What a responder may answer, from the packets alone: for each queue pair, how far the requests
 * that have come to it reach without a gap. An answer beyond that is to a request that was not due.
 * Requests that were refused count as if they had been executed, so the reach is never too short.
 */
import { OPCODE_BIT, OPERATION } from '../../core/spi/wire/opcode.js';
import {
  AETH_OFFSET_OF,
  BITS_OF,
  OPERATION_OF,
  RETH_OFFSET_OF,
} from '../../core/spi/wire/packet-layout.js';
import { psnAdd, psnDiff } from '../../providers/hca/wire/psn.js';
import type { TappedPacket } from '../../providers/mock/wire-packet.js';
import { Violation } from '../sim/trace.js';

interface Reach {
  readonly peer: string;
  readonly mtuBytes: number;
  end: number;
}

const FIRST_NAK_SYNDROME = 0x20;
const MIN_BYTES = 16;
const MAX_READ_BYTES = 65536;

export class SequenceOracle {
  /** By address and number of the responder's queue pair. */
  private readonly reaches = new Map<string, Reach>();
  /** By the same of its peer: to whom it answers. */
  private readonly responders = new Map<string, string>();

  add(address: string, qpn: number, peer: string, peerQpn: number, r: Omit<Reach, 'peer'>): void {
    this.reaches.set(`${address} ${qpn}`, { ...r, peer });
    this.responders.set(`${address} ${peer} ${peerQpn}`, `${address} ${qpn}`);
  }

  remove(address: string, qpn: number, peer: string, peerQpn: number): void {
    this.reaches.delete(`${address} ${qpn}`);
    this.responders.delete(`${address} ${peer} ${peerQpn}`);
  }

  delivered({ flow, view, buffer, length }: TappedPacket): void {
    const opcode = buffer[0] ?? 0;
    if (length < MIN_BYTES || (BITS_OF[opcode]! & OPCODE_BIT.request) === 0) return;
    const reach = this.reaches.get(`${flow.to} ${view.getUint32(4) & 0xffffff}`);
    if (reach?.peer !== flow.from) return;
    const psn = view.getUint32(8) & 0xffffff;
    if (psnDiff(psn, reach.end) > 0) return;
    const end = psnAdd(psn, this.count(opcode, view, length, reach.mtuBytes));
    if (psnDiff(end, reach.end) > 0) reach.end = end;
  }

  private count(opcode: number, view: DataView, length: number, mtuBytes: number): number {
    const reth = RETH_OFFSET_OF[opcode]!;
    const isRead = OPERATION_OF[opcode] === OPERATION.readRequest && reth + 16 <= length;
    if (!isRead) return 1;
    const bytes = view.getUint32(reth + 12);
    // No region is so large: it is refused. (A count near half of the numbers would tell nothing.)
    return bytes > MAX_READ_BYTES ? 1 : Math.max(1, Math.ceil(bytes / mtuBytes));
  }

  /** @throws Violation for an answer to what has not come in sequence */
  sent({ flow, view, buffer }: TappedPacket): void {
    const opcode = buffer[0] ?? 0;
    if ((BITS_OF[opcode]! & OPCODE_BIT.response) === 0) return;
    const peerQpn = view.getUint32(4) & 0xffffff;
    const responder = this.responders.get(`${flow.from} ${flow.to} ${peerQpn}`);
    const reach = responder === undefined ? undefined : this.reaches.get(responder);
    if (!reach) return;
    const psn = view.getUint32(8) & 0xffffff;
    const aeth = AETH_OFFSET_OF[opcode]!;
    const nak = aeth > 0 && (buffer[aeth] ?? 0) >= FIRST_NAK_SYNDROME;
    if (psnDiff(psn, reach.end) < (nak ? 1 : 0)) return;
    throw new Violation(`${responder} answers PSN ${psn}, and requests reach to ${reach.end}`);
  }
}
