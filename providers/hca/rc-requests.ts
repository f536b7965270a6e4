/**
 * What the RC requester knows of each request that it has begun, by ring slot; and the check of a
 * request, once, before anything of it is sent.
 */
import { SQE, WcStatus, WrFlags } from '../../core/spi/index.js';
import { isLocalOperation } from './local-operations.js';
import { MAX_MESSAGE_BYTES } from './parameters.js';
import { isRcOpcode, isAtomic, needsResponse } from './rc-opcodes.js';
import type { RcQueuePair } from './rc-queue-pair.js';
import { segmentBytes } from './segment-cursor.js';

/** Whether a request puts nothing on the wire: going back does not repeat what is done. */
export const LOCAL = { NO: 0, TO_DO: 1, DONE: 2 } as const;

export class RcRequests {
  readonly firstPsn: Uint32Array;
  /** PSNs that it uses. */
  readonly packetCount: Uint32Array;
  readonly lengthBytes: Uint32Array;
  /** LOCAL. */
  readonly local: Uint8Array;

  constructor(private readonly qp: RcQueuePair) {
    const { entries } = qp.sendRing;
    // One buffer: what a buffer costs beside its bytes counts where there are many connections.
    const buffer = new ArrayBuffer(entries * 13);
    this.firstPsn = new Uint32Array(buffer, 0, entries);
    this.packetCount = new Uint32Array(buffer, entries * 4, entries);
    this.lengthBytes = new Uint32Array(buffer, entries * 8, entries);
    this.local = new Uint8Array(buffer, entries * 12, entries);
  }

  /** Checks a request and notes its size; a completion status. */
  inspect(words: Uint32Array, at: number, slot: number): number {
    const control = words[at + SQE.CONTROL]!;
    const opcode = control & 0xff;
    const segments = (control >>> 16) & 0xff;
    const inline = (control & (WrFlags.INLINE << 8)) !== 0;
    const { maxSendSge, maxInlineBytes } = this.qp;
    this.packetCount[slot] = 1;
    this.lengthBytes[slot] = 0;
    this.local[slot] = isLocalOperation(opcode) ? LOCAL.TO_DO : LOCAL.NO;
    if (!isRcOpcode(opcode) || (inline && needsResponse(opcode))) return WcStatus.LOC_QP_OP_ERR;
    if (this.local[slot] !== LOCAL.NO) {
      this.packetCount[slot] = 0;
      return WcStatus.SUCCESS;
    }
    if (needsResponse(opcode) && (this.qp.attributes.maxRdAtomic ?? 0) === 0) {
      return WcStatus.LOC_QP_OP_ERR;
    }
    if (segments > maxSendSge) return WcStatus.LOC_QP_OP_ERR;
    const length = inline
      ? words[at + SQE.INLINE_LENGTH]!
      : segmentBytes(words, at + SQE.SEGMENTS, segments);
    if (length > (inline ? maxInlineBytes : MAX_MESSAGE_BYTES)) return WcStatus.LOC_LEN_ERR;
    if (isAtomic(opcode)) return length === 8 ? WcStatus.SUCCESS : WcStatus.LOC_LEN_ERR;
    this.lengthBytes[slot] = length;
    this.packetCount[slot] = Math.max(1, Math.ceil(length / this.qp.mtuBytes));
    return WcStatus.SUCCESS;
  }
}
