/** Transaction ids: as one number a connection keeps them in a third of what two would take. */

/** 64 bits: those of the agent that asked, then its own count. */
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
