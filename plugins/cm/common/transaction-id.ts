/** Transaction ids, and the MADs that carry them. */
import type { MadAddress } from '../../../core/spi/index.js';
import { type CmMessage, emitCmMad } from '../wire/message.js';

/**
 * 64 bits: the requesting agent's upper half, then its own counter. One bigint takes a third of the
 * memory of two numbers.
 */
export type TransactionId = bigint;

const BITS = 32n;

export function transactionIdOf(hi: number, lo: number): TransactionId {
  return (BigInt(hi) << BITS) | BigInt(lo);
}

export function transactionIdWords(id: TransactionId): {
  readonly hi: number;
  readonly lo: number;
} {
  return { hi: Number(id >> BITS), lo: Number(BigInt.asUintN(32, id)) };
}

/** The source of a message, and the transaction id that its answer must repeat. */
export interface Origin {
  readonly source: MadAddress;
  readonly transactionId: TransactionId;
}

/** Builds the MAD that carries a CM message to QP1. */
export function madOf(message: CmMessage, transactionId: TransactionId): Uint8Array {
  const { hi, lo } = transactionIdWords(transactionId);
  return emitCmMad({ transactionIdHi: hi, transactionIdLo: lo, attributeModifier: 0, message });
}
