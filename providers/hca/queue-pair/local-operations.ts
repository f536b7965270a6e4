/** Send requests that put nothing on the wire: BIND_MW and LOCAL_INV. */
import { SQE, WcStatus, WrOpcode } from '../../../core/spi/index.js';
import type { SoftQueuePair } from './queue-pair.js';

export function isLocalOperation(wrOpcode: number): boolean {
  return wrOpcode === WrOpcode.BIND_MW || wrOpcode === WrOpcode.LOCAL_INV;
}

/**
 * Does it; a completion status. Requests behind it have not begun yet, so a peer that gets the new
 * key by one of them finds the window bound (IBTA 10.8.3.3).
 */
export function executeLocalOperation(qp: SoftQueuePair, index: number): number {
  const { words } = qp.sendRing;
  const at = qp.sendRing.wordOf(index);
  const { windows } = qp.hca.memory;
  if ((words[at + SQE.CONTROL]! & 0xff) === WrOpcode.LOCAL_INV) {
    const done = windows.invalidate(qp, words[at + SQE.IMMEDIATE_OR_INVALIDATE]!);
    return done ? WcStatus.SUCCESS : WcStatus.MW_BIND_ERR;
  }
  if (!windows.has(words[at + SQE.BIND_WINDOW]!)) return WcStatus.LOC_QP_OP_ERR;
  return windows.bind(qp, words, at) ? WcStatus.SUCCESS : WcStatus.MW_BIND_ERR;
}
