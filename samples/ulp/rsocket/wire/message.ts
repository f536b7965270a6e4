/**
 * Messages: each is an RDMA write with immediate data. The 32 bits describe the written bytes: the
 * operation in bits 31 to 29, an argument in bits 28 to 0.
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
  /** The sender has ended writing and reading. */
  DISCONNECT: 0,
  /** No meaning. On the wire a keepalive is a write of no bytes without immediate data. */
  KEEPALIVE: 1,
  /** The sender has ended writing. */
  SHUTDOWN: 2,
} as const;

const OPERATION_SHIFT = 29;
/** The largest argument, and so the length of the longest message. */
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

/** Sequence numbers of 16 bits, which wrap. */
export const SEQUENCE_MASK = 0xffff;

export function next16(sequence: number, by: number): number {
  return (sequence + by) & SEQUENCE_MASK;
}

/** Distance from one sequence number to the other: 0 to 65535. */
export function distance(from: number, to: number): number {
  return (to - from) & SEQUENCE_MASK;
}

/** A violation of the protocol by the peer: the value that it sent, and the allowed values. */
export class RsocketProtocolError extends Error {
  override readonly name = 'RsocketProtocolError';

  constructor(
    /** The field, or the request of a message, that is wrong. */
    readonly field: string,
    readonly value: number | string,
    /** Allowed values. */
    readonly limit: string,
  ) {
    super(`the peer violates the protocol: ${field} is ${value}, must be ${limit}`);
  }
}
