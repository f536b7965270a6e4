/** Checks the payload of a send entry before any of it is sent. */
import { SQE, WcStatus, WrFlags } from '../../../core/spi/index.js';
import { segmentBytes } from '../memory/segment-cursor.js';
import type { SoftQueuePair } from './queue-pair.js';

/**
 * Bytes that the entry at word `at` of the send ring names; a negative completion status where it
 * is malformed, or too long.
 * @param mostBytes of payload that is not inline
 */
export function requestBytes(qp: SoftQueuePair, at: number, mostBytes: number): number {
  const { words } = qp.sendRing;
  const control = words[at + SQE.CONTROL]!;
  const segments = (control >>> 16) & 0xff;
  const inline = (control & (WrFlags.INLINE << 8)) !== 0;
  if (segments > qp.maxSendSge) return -WcStatus.LOC_QP_OP_ERR;
  const bytes = inline
    ? words[at + SQE.INLINE_LENGTH]!
    : segmentBytes(words, at + SQE.SEGMENTS, segments);
  return bytes > (inline ? qp.maxInlineBytes : mostBytes) ? -WcStatus.LOC_LEN_ERR : bytes;
}
