/**
 * Messages: each is an RDMA write with immediate data. The 32 bits tell what the written bytes are:
 * the operation in bits 31 to 29, an argument in bits 28 to 0.
 */

export const Operation = {
  /** The argument is the number of bytes, which are the next ones of the stream. */
  DATA: 0,
  /** A new target entry, or none; the argument's low 16 bits are the limit of the sequence. */
  TARGET: 4,
  /** An iomap entry; the argument is its slot. */
  IOMAP: 6,
  /** The argument is one of `Control`. */
  CONTROL: 7,
} as const;

export const Control = {
  /** The sender writes and reads no more. */
  DISCONNECT: 0,
  /** Says nothing. On the wire a keepalive is a write of no bytes without immediate data. */
  KEEPALIVE: 1,
  /** The sender writes no more. */
  SHUTDOWN: 2,
} as const;

const OPERATION_SHIFT = 29;
/** The longest argument, and so the longest message in bytes. */
export const ARGUMENT_MASK = 0x1fff_ffff;

export function immediateOf(operation: number, argument: number): number {
  return ((operation << OPERATION_SHIFT) | argument) >>> 0;
}

export function operationOf(immediate: number): number {
  return immediate >>> OPERATION_SHIFT;
}

export function argumentOf(immediate: number): number {
  return immediate & ARGUMENT_MASK;
}
