/** Decodes the words of ring entries (core/spi/layout/ring.ts) into objects. */
import { type WcOpcode, WrFlags, type WrOpcode } from '../wire/ib.js';
import { CQE, type Ring, RQE, SGE, SQE } from '../layout/ring.js';

declare const OF: unique symbol;
/** Opcode of a work request: its numbers and type differ from those of a completion. */
export type PostedOpcode = WrOpcode & { readonly [OF]: 'request' };
/** Opcode of a completion. */
export type CompletedOpcode = WcOpcode & { readonly [OF]: 'completion' };

/** A work request handed to the device. */
export interface PostedRequest {
  readonly kind: 'send' | 'receive';
  /** 0 for a receive of a shared receive queue. */
  readonly qpn: number;
  /** 0 for a request of a queue pair's own queue, or of a shared queue that has no number. */
  readonly srqn: number;
  /** Free-running index in its ring, or the slot of a shared receive queue. */
  readonly index: number;
  /** Absent for a receive. */
  readonly opcode?: PostedOpcode;
  /** 64 bits, chosen by the poster. */
  readonly cookie: bigint;
  /** Sum of its segments, or of its inline payload, in bytes. */
  readonly lengthBytes: number;
  /** Always true for a receive. */
  readonly signalled: boolean;
  /** By the device's clock, in microseconds. */
  readonly timeUs: number;
}

/** A completion, when its consumer reads it. */
export interface ObservedCompletion {
  readonly kind: 'send' | 'receive';
  readonly qpn: number;
  readonly srqn: number;
  readonly index: number;
  /** A number of `WcStatus`. */
  readonly status: number;
  readonly opcode: CompletedOpcode;
  readonly cookie: bigint;
  /** The `context` number of its queue pair. */
  readonly context: number;
  /** Bytes of a success; 0 for a failure. */
  readonly lengthBytes: number;
  readonly timeUs: number;
  /** From the doorbell of the request; absent if that was not observed. */
  readonly tookUs?: number;
}

/** Completion opcodes from this one on are those of receives. */
const FIRST_RECEIVE_OPCODE = 128;

/**
 * Added to the opcode of a request that an observer makes fail. No verb has that bit, and no
 * receive. The device refuses such a request in its turn, and ends its queue pair in the right
 * order. Observers beneath still see the original opcode.
 */
export const REFUSED = 0x40;

/** The indices `from` to `to` - 1, which wrap around at 2^32. */
export function* indices(from: number, to: number): Generator<number> {
  for (let index = from; index !== to; index = (index + 1) >>> 0) yield index;
}

export function sendAt(qpn: number, ring: Ring, index: number, timeUs: number): PostedRequest {
  const { words } = ring;
  const at = ring.wordOf(index);
  const control = words[at + SQE.CONTROL]!;
  const flags = (control >>> 8) & 0xff;
  const isInline = (flags & WrFlags.INLINE) !== 0;
  const segments = (control >>> 16) & 0xff;
  return {
    kind: 'send',
    qpn,
    srqn: 0,
    index,
    opcode: (control & 0xff & ~REFUSED) as PostedOpcode,
    cookie: cookieAt(words, at + SQE.COOKIE_LO),
    lengthBytes: isInline
      ? words[at + SQE.INLINE_LENGTH]!
      : bytesOf(words, at + SQE.SEGMENTS, segments),
    signalled: (flags & WrFlags.SIGNALED) !== 0,
    timeUs,
  };
}

/** @param name the queue's owner: a queue pair, or a shared one */
export function receiveAt(
  name: { readonly qpn: number; readonly srqn: number },
  ring: Ring,
  index: number,
  timeUs: number,
): PostedRequest {
  const { words } = ring;
  const at = ring.wordOf(index);
  return {
    kind: 'receive',
    ...name,
    index,
    cookie: cookieAt(words, at + RQE.COOKIE_LO),
    lengthBytes: bytesOf(words, at + RQE.SEGMENTS, words[at + RQE.NUM_SGE]!),
    signalled: true,
    timeUs,
  };
}

export function completionAt(ring: Ring, index: number, timeUs: number): ObservedCompletion {
  const { words } = ring;
  const at = ring.wordOf(index);
  const control = words[at + CQE.CONTROL]!;
  const status = control & 0xff;
  const opcode = ((control >>> 8) & 0xff) as CompletedOpcode;
  return {
    kind: opcode >= FIRST_RECEIVE_OPCODE ? 'receive' : 'send',
    qpn: words[at + CQE.QPN]!,
    srqn: words[at + CQE.SRQN]!,
    index: words[at + CQE.WQE_INDEX]!,
    status,
    opcode,
    cookie: cookieAt(words, at + CQE.COOKIE_LO),
    context: words[at + CQE.QP_CONTEXT]!,
    lengthBytes: status === 0 ? words[at + CQE.BYTE_LENGTH]! : 0,
    timeUs,
  };
}

function cookieAt(words: Uint32Array, at: number): bigint {
  return BigInt(words[at]!) | (BigInt(words[at + 1]!) << 32n);
}

function bytesOf(words: Uint32Array, first: number, segments: number): number {
  let bytes = 0;
  for (let i = 0; i < segments; i++) bytes += words[first + i * SGE.WORDS + SGE.LENGTH]!;
  return bytes;
}
