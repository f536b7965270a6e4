/** The check of an RC request, before anything of it is sent. */
import { SQE, WcStatus, WrFlags } from '../../../core/spi/index.js';
import { MAX_MESSAGE_BYTES } from '../common/parameters.js';
import type { ReliableQueuePair } from '../connected/connection.js';
import { isLocalOperation } from '../queue-pair/local-operations.js';
import { LOCAL } from '../queue-pair/queue-pair-memory.js';
import { requestBytes } from '../queue-pair/request-bytes.js';
import { isRcOpcode, isAtomic, needsResponse } from '../wire/request-opcodes.js';

/** Checks a request, once, and notes its size; a completion status. */
export function inspectRequest(qp: ReliableQueuePair, at: number, slot: number): number {
  const { memory } = qp;
  const control = memory.words[at + SQE.CONTROL]!;
  const opcode = control & 0xff;
  const inline = (control & (WrFlags.INLINE << 8)) !== 0;
  const local = isLocalOperation(opcode);
  const answered = needsResponse(opcode);
  memory.setPackets(slot, local ? 0 : 1);
  memory.setLengthBytes(slot, 0);
  memory.setLocal(slot, local ? LOCAL.TO_DO : LOCAL.NO);
  if (!isRcOpcode(opcode) || (answered && (inline || memory.maxRdAtomic === 0))) {
    return WcStatus.LOC_QP_OP_ERR;
  }
  if (local) return WcStatus.SUCCESS;
  const length = requestBytes(qp, at, MAX_MESSAGE_BYTES);
  if (length < 0) return -length;
  if (isAtomic(opcode)) return length === 8 ? WcStatus.SUCCESS : WcStatus.LOC_LEN_ERR;
  memory.setPackets(slot, Math.max(1, Math.ceil(length / qp.mtuBytes)));
  memory.setLengthBytes(slot, length);
  return WcStatus.SUCCESS;
}
