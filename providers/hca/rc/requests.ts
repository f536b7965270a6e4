/** The check of an RC request, before anything of it is sent. */
import { SQE, WcStatus, WrFlags } from '../../../core/spi/index.js';
import { ATTRIBUTE } from '../queue-pair/kept-attributes.js';
import { isLocalOperation } from '../queue-pair/local-operations.js';
import { MAX_MESSAGE_BYTES } from '../common/parameters.js';
import { isRcOpcode, isAtomic, needsResponse } from '../wire/request-opcodes.js';
import { LOCAL } from './memory.js';
import type { RcQueuePair } from './queue-pair.js';
import { segmentBytes } from '../memory/segment-cursor.js';

/** Checks a request, once, and notes its size; a completion status. */
export function inspectRequest(qp: RcQueuePair, at: number, slot: number): number {
  const { memory } = qp;
  const { words } = memory;
  const control = words[at + SQE.CONTROL]!;
  const opcode = control & 0xff;
  const segments = (control >>> 16) & 0xff;
  const inline = (control & (WrFlags.INLINE << 8)) !== 0;
  const { maxSendSge, maxInlineBytes } = qp;
  const local = isLocalOperation(opcode);
  memory.setSize(slot, local ? 0 : 1, 0, local ? LOCAL.TO_DO : LOCAL.NO);
  if (!isRcOpcode(opcode) || (inline && needsResponse(opcode))) return WcStatus.LOC_QP_OP_ERR;
  if (local) return WcStatus.SUCCESS;
  if (needsResponse(opcode) && qp.memory.attribute(ATTRIBUTE.maxRdAtomic) === 0) {
    return WcStatus.LOC_QP_OP_ERR;
  }
  if (segments > maxSendSge) return WcStatus.LOC_QP_OP_ERR;
  const length = inline
    ? words[at + SQE.INLINE_LENGTH]!
    : segmentBytes(words, at + SQE.SEGMENTS, segments);
  if (length > (inline ? maxInlineBytes : MAX_MESSAGE_BYTES)) return WcStatus.LOC_LEN_ERR;
  if (isAtomic(opcode)) return length === 8 ? WcStatus.SUCCESS : WcStatus.LOC_LEN_ERR;
  memory.setSize(slot, Math.max(1, Math.ceil(length / qp.mtuBytes)), length, LOCAL.NO);
  return WcStatus.SUCCESS;
}
