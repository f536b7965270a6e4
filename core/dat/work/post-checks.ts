/** Checks of a post, on the hot path: they allocate only for errors. */
import { checkU64, invalid } from '../../errors/guards.js';
import { DatError, type DatSubtype, type DatType } from '../../errors/index.js';
import { integerText, isBitSet, isInteger, isU64 } from '../../spi/checks/index.js';
import { CompletionFlags, flagNames, MemPrivileges } from '../common/constants.js';
import type { Pz } from '../memory/pz.js';
import { hasLostMemory, LmrSegment, lostMemory } from '../memory/segment.js';
import type { EntryRing } from './entry-ring.js';

const MAX_U32 = 2 ** 32 - 1;

/**
 * Checks the segments of a request: live regions of the endpoint's zone, with the privilege, and
 * within the limits. Returns their length in bytes.
 */
export function checkSegments(
  operation: string,
  segments: LmrSegment | readonly LmrSegment[],
  pz: Pz,
  privilege: number,
  maxSegments: number,
  maxBytes: number,
): number {
  let lengthBytes = 0;
  if (segments instanceof LmrSegment) {
    checkSegment(operation, segments, pz, privilege);
    lengthBytes = segments.lengthBytes;
  } else {
    if (!Array.isArray(segments)) {
      throw invalid(operation, 'segments', segments, 'an LmrSegment or an array of them');
    }
    if (segments.length > maxSegments) {
      const name = 'the number of segments';
      throw invalid(operation, name, segments.length, `<= ${maxSegments}`, 'count');
    }
    for (let i = 0; i < segments.length; i++) {
      const segment: unknown = segments[i];
      checkSegment(operation, segment, pz, privilege);
      lengthBytes += segment.lengthBytes;
    }
  }
  if (lengthBytes <= maxBytes) return lengthBytes;
  throw new DatError('DAT_LENGTH_ERROR', {
    operation,
    message: `the segments have ${lengthBytes} bytes together; the endpoint takes ${maxBytes}`,
    value: lengthBytes,
  });
}

function checkSegment(
  operation: string,
  segment: unknown,
  pz: Pz,
  privilege: number,
): asserts segment is LmrSegment {
  if (!(segment instanceof LmrSegment)) {
    const expected = 'an LmrSegment, from lmr.segment()';
    throw invalid(operation, 'a segment', segment, expected, 'segments');
  }
  const { lmr } = segment;
  if (
    lmr.isFreed ||
    lmr.pz !== pz ||
    (lmr.privileges & privilege) === 0 ||
    hasLostMemory(segment)
  ) {
    throw refusal(operation, segment, pz, privilege);
  }
}

function refusal(operation: string, segment: LmrSegment, pz: Pz, privilege: number): DatError {
  const { lmr } = segment;
  const error = (code: DatType, subtype: DatSubtype, why: string, hint?: string): DatError =>
    new DatError(code, {
      subtype,
      operation,
      message: `memory region ${lmr.id} ${why}`,
      hint,
      value: segment,
    });
  if (lmr.isFreed) return error('DAT_INVALID_HANDLE', 'DAT_INVALID_HANDLE_LMR', 'has been freed');
  const write = privilege === MemPrivileges.LOCAL_WRITE;
  if (lmr.pz !== pz) {
    const subtype = write ? 'DAT_PROTECTION_WRITE' : 'DAT_PROTECTION_READ';
    const message = `belongs to protection zone ${lmr.pz.id}, the queue to ${pz.id}`;
    return error('DAT_PROTECTION_VIOLATION', subtype, message, 'make both in one protection zone');
  }
  if (hasLostMemory(segment)) return lostMemory(operation, segment);
  const subtype = write ? 'DAT_PRIVILEGES_WRITE' : 'DAT_PRIVILEGES_READ';
  const name = write ? 'LOCAL_WRITE' : 'LOCAL_READ';
  const hint = `register the memory with MemPrivileges.${name}`;
  return error('DAT_PRIVILEGES_VIOLATION', subtype, `was made without ${name}`, hint);
}

/** A cookie: any safe integer that is not negative. It comes back in the event. */
export function checkCookie(operation: string, cookie: unknown): asserts cookie is number {
  if (isInteger(cookie, 0, Number.MAX_SAFE_INTEGER)) return;
  throw invalid(operation, 'cookie', cookie, 'an integer from 0 to 2^53 - 1');
}

/** CompletionFlags of a post: no bits but those of the mask. */
export function checkFlags(operation: string, flags: unknown, mask: number): void {
  if (isBitSet(flags, mask)) return;
  throw invalid(operation, 'flags', flags, `of ${flagNames(CompletionFlags, mask)}`);
}

/** An argument of 32 bits: immediate data, a remote context. */
export function checkU32(operation: string, name: string, value: unknown): void {
  if (isInteger(value, 0, MAX_U32)) return;
  throw invalid(operation, name, value, integerText(0, MAX_U32));
}

/** An operand of an atomic. */
export function checkOperand(operation: string, name: string, value: unknown): void {
  if (!isU64(value)) checkU64(operation, name, value);
}

// The common part of all posting calls.

/**
 * The queue looks full: scans, in case completions are waiting.
 * @param limit how many of `what` the consumer may have outstanding
 * @throws DatError DAT_INSUFFICIENT_RESOURCES / DAT_RESOURCE_CREDITS
 */
export function makeRoom(
  operation: string,
  owner: { takeInCompletions(): void },
  queue: EntryRing,
  limit: number,
  what: string,
  hint = 'wait for completions, or ask for more in the endpoint attributes',
): void {
  owner.takeInCompletions();
  if (!queue.full) return;
  throw new DatError('DAT_INSUFFICIENT_RESOURCES', {
    subtype: 'DAT_RESOURCE_CREDITS',
    operation,
    message: `${limit} ${what} are outstanding: the queue is full`,
    hint,
    value: limit,
  });
}

/** Bursts nest; their requests are sent with the outermost, also when `work` throws. */
export function burst(
  operation: string,
  queues: { beginBurst(): void; endBurst(): void },
  work: () => void,
): void {
  if (typeof work !== 'function') throw invalid(operation, 'work', work, 'a function');
  queues.beginBurst();
  try {
    work();
  } finally {
    queues.endBurst();
  }
}

/** For the trace, which is written before parameters are checked. */
export function countOf(segments: unknown): number {
  return Array.isArray(segments) ? segments.length : 1;
}
