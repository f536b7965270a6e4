/**
 * What the RC requester knows of each request that it has begun, by ring slot; and the check of a
 * request, once, before anything of it is sent.
 */
import { SQE, WcStatus, WrFlags } from '../../core/spi/index.js';
import { isLocalOperation } from './local-operations.js';
import { MAX_MESSAGE_BYTES } from './parameters.js';
import { isRcOpcode, isAtomic, needsResponse } from './rc-opcodes.js';
import { REQUEST_ROW } from './queue-pair-memory.js';
import type { QueuePairMemory } from './queue-pair-memory.js';
import type { RcQueuePair } from './rc-queue-pair.js';
import { segmentBytes } from './segment-cursor.js';

/** Whether a request puts nothing on the wire: going back does not repeat what is done. */
export const LOCAL = { NO: 0, TO_DO: 1, DONE: 2 } as const;

export class RcRequests {
  private readonly memory: QueuePairMemory;

  constructor(private readonly qp: RcQueuePair) {
    this.memory = qp.memory;
  }

  /** PSN of its first packet. */
  firstPsn(slot: number): number {
    return this.memory.words[this.wordOf(slot) + REQUEST_ROW.FIRST_PSN]!;
  }

  setFirstPsn(slot: number, psn: number): void {
    this.memory.words[this.wordOf(slot) + REQUEST_ROW.FIRST_PSN] = psn;
  }

  /** PSNs that it uses. */
  packets(slot: number): number {
    return this.memory.words[this.wordOf(slot) + REQUEST_ROW.PACKETS]!;
  }

  /** Of its message. */
  lengthBytes(slot: number): number {
    return this.memory.words[this.wordOf(slot) + REQUEST_ROW.LENGTH]!;
  }

  /** LOCAL. */
  local(slot: number): number {
    return this.memory.words[this.wordOf(slot) + REQUEST_ROW.LOCAL]!;
  }

  /** What puts nothing on the wire has been done. */
  setDone(slot: number): void {
    this.memory.words[this.wordOf(slot) + REQUEST_ROW.LOCAL] = LOCAL.DONE;
  }

  private note(slot: number, packets: number, lengthBytes: number, local: number): void {
    const { words } = this.memory;
    const at = this.wordOf(slot);
    words[at + REQUEST_ROW.PACKETS] = packets;
    words[at + REQUEST_ROW.LENGTH] = lengthBytes;
    words[at + REQUEST_ROW.LOCAL] = local;
  }

  private wordOf(slot: number): number {
    return this.memory.firstRequest + slot * REQUEST_ROW.WORDS;
  }

  /** Checks a request and notes its size; a completion status. */
  inspect(words: Uint32Array, at: number, slot: number): number {
    const control = words[at + SQE.CONTROL]!;
    const opcode = control & 0xff;
    const segments = (control >>> 16) & 0xff;
    const inline = (control & (WrFlags.INLINE << 8)) !== 0;
    const { maxSendSge, maxInlineBytes } = this.qp;
    const local = isLocalOperation(opcode);
    this.note(slot, local ? 0 : 1, 0, local ? LOCAL.TO_DO : LOCAL.NO);
    if (!isRcOpcode(opcode) || (inline && needsResponse(opcode))) return WcStatus.LOC_QP_OP_ERR;
    if (local) return WcStatus.SUCCESS;
    if (needsResponse(opcode) && (this.qp.attributes.maxRdAtomic ?? 0) === 0) {
      return WcStatus.LOC_QP_OP_ERR;
    }
    if (segments > maxSendSge) return WcStatus.LOC_QP_OP_ERR;
    const length = inline
      ? words[at + SQE.INLINE_LENGTH]!
      : segmentBytes(words, at + SQE.SEGMENTS, segments);
    if (length > (inline ? maxInlineBytes : MAX_MESSAGE_BYTES)) return WcStatus.LOC_LEN_ERR;
    if (isAtomic(opcode)) return length === 8 ? WcStatus.SUCCESS : WcStatus.LOC_LEN_ERR;
    this.note(slot, Math.max(1, Math.ceil(length / this.qp.mtuBytes)), length, LOCAL.NO);
    return WcStatus.SUCCESS;
  }
}
