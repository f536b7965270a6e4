/** Checks of a post, on the hot path: they allocate only for errors. */
import { checkU64, invalid } from '../../errors/guards.js';
import { DatError, type DatSubtype, type DatType } from '../../errors/index.js';
import { assert, integerText, isBitSet, isInteger, isU64 } from '../../spi/checks/index.js';
import { CompletionFlags, flagNames, MemPrivileges } from '../common/constants.js';
import type { Pz } from '../memory/pz.js';
import { hasLostMemory, LmrSegment, lostMemory } from '../memory/segment.js';

// Arguments of the posting calls, and the errors for invalid ones.

/**
 * Arguments of the posting calls in the order of DAT's prototypes: the n of DAT_INVALID_ARGn. A
 * call that DAT does not have counts as the DAT call that it extends.
 */
const ARGUMENTS: Readonly<Record<string, string>> = {
  'ep.postSend': 'ep count segments cookie flags',
  'ep.postSendWithInvalidate': 'ep count segments cookie flags invalidate rmrContext',
  'ep.postSendWithImmediate': 'ep count segments cookie immediate flags',
  'ep.postRecv': 'ep count segments cookie flags',
  'ep.postRdmaWrite': 'ep count segments cookie remote flags',
  'ep.postRdmaRead': 'ep count segments cookie remote flags',
  'ep.postRdmaReadToRmr': 'ep segments cookie remote flags',
  'ep.postRdmaWriteWithImmediate': 'ep count segments cookie remote immediate flags',
  'ep.postFetchAdd': 'ep add segments cookie remote flags',
  'ep.postCompareSwap': 'ep compare swap segments cookie remote flags',
  'ep.postSendUd': 'ep count segments to cookie flags',
  'ep.postSendUdWithImmediate': 'ep count segments to cookie immediate flags',
  'srq.postRecv': 'srq count segments cookie',
  'rmr.bind': 'rmr lmr segment privileges vaType ep cookie flags',
  'rmr.unbind': 'rmr lmr segment privileges vaType ep cookie flags',
};

/** By call and argument: counted from 1. */
const POSITIONS = new Map(
  Object.entries(ARGUMENTS).map(([operation, list]) => [
    operation,
    new Map(list.split(' ').map((name, i) => [name, i + 1])),
  ]),
);

/** Position of a posting call's argument, counted from 1; one of a single segment has no count. */
export function positionOf(operation: string, argument: string): number {
  const call = POSITIONS.get(operation);
  const position =
    call?.get(argument) ?? (argument === 'count' ? call?.get('segments') : undefined);
  assert(position !== undefined, 'a posting call has the argument', argument);
  return position;
}

/** The error of a posting call for an argument; `name` where that says more than the argument. */
export function badArgument(
  operation: string,
  argument: string,
  value: unknown,
  expected: string,
  name = argument,
): DatError {
  return invalid(operation, positionOf(operation, argument), name, value, expected);
}

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
      throw badArgument(operation, 'segments', segments, 'an LmrSegment or an array of them');
    }
    if (segments.length > maxSegments) {
      const name = 'the number of segments';
      throw badArgument(operation, 'count', segments.length, `<= ${maxSegments}`, name);
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
    throw badArgument(operation, 'segments', segment, expected, 'a segment');
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
  throw badArgument(operation, 'cookie', cookie, 'an integer from 0 to 2^53 - 1');
}

/** CompletionFlags of a post: no bits but those of the mask. */
export function checkFlags(operation: string, flags: unknown, mask: number): void {
  if (isBitSet(flags, mask)) return;
  throw badArgument(operation, 'flags', flags, `of ${flagNames(CompletionFlags, mask)}`);
}

/** An argument of 32 bits: immediate data, a remote context. */
export function checkU32(operation: string, name: string, value: unknown): void {
  if (isInteger(value, 0, MAX_U32)) return;
  throw badArgument(operation, name, value, integerText(0, MAX_U32));
}

/** An operand of an atomic. */
export function checkOperand(operation: string, name: string, value: unknown): void {
  if (!isU64(value)) checkU64(operation, positionOf(operation, name), name, value);
}
