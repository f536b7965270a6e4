/** Send requests that put nothing on the wire: BIND_MW and LOCAL_INV. */
import { SQE, WcStatus, WrOpcode } from '../../core/spi/index.js';
import type { SoftQueuePair } from './queue-pair.js';

export function isLocalOperation(wrOpcode: number): boolean {
  return wrOpcode === WrOpcode.BIND_MW || wrOpcode === WrOpcode.LOCAL_INV;
}

/**
 * Does it; a completion status. Requests behind it have not begun yet, so whoever gets the new key
 * by one of them finds the window bound (IBTA 10.8.3.3).
 */
export function executeLocalOperation(qp: SoftQueuePair, index: number): number {
  const { words } = qp.sendRing;
  const at = qp.sendRing.wordOf(index);
  const { windows } = qp.hca.memory;
  const bind = (words[at + SQE.CONTROL]! & 0xff) === WrOpcode.BIND_MW;
  const done = bind
    ? windows.bind(qp, words, at)
    : windows.invalidate(qp, words[at + SQE.IMMEDIATE_OR_INVALIDATE]!);
  return done ? WcStatus.SUCCESS : WcStatus.MW_BIND_ERR;
}
