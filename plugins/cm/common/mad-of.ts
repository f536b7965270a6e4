/** A message of the CM as it goes to QP1. */
import { type CmMessage, emitCmMad } from '../wire/message.js';
import { type TransactionId, transactionIdWords } from './transaction-id.js';

export function madOf(message: CmMessage, transactionId: TransactionId): Uint8Array {
  const { hi, lo } = transactionIdWords(transactionId);
  return emitCmMad({ transactionIdHi: hi, transactionIdLo: lo, attributeModifier: 0, message });
}
