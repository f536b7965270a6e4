/** Checks of a post, on the hot path: nothing is made unless something is wrong. */
import { DatError, type DatSubtype, type DatType } from '../../errors/index.js';
import { MemPrivileges } from '../common/constants.js';
import { checkInteger, checkU64, invalid } from '../../errors/guards.js';
import { isInteger, isU64 } from '../../spi/checks/index.js';
import { checkHandle } from '../common/handle.js';
import type { IaCore } from '../ia/core.js';
import { Lmr } from '../memory/lmr.js';
import type { Pz } from '../memory/pz.js';
import { positionOf } from './post-arguments.js';
import { LmrSegment } from '../memory/segment.js';

const MAX_U32 = 2 ** 32 - 1;

/**
 * The segments of a request: live regions of the endpoint's zone, with the privilege, and no more
 * than the limits. Returns their length in bytes.
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
      const position = positionOf(operation, 'segments');
      const expected = 'an LmrSegment or an array of them';
      throw invalid(operation, position, 'segments', segments, expected);
    }
    if (segments.length > maxSegments) {
      const position = positionOf(operation, 'count');
      const expected = `<= ${maxSegments}`;
      throw invalid(operation, position, 'the number of segments', segments.length, expected);
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
    throw invalid(operation, positionOf(operation, 'segments'), 'a segment', segment, expected);
  }
  const { lmr } = segment;
  if (lmr.isFreed || lmr.pz !== pz || (lmr.privileges & privilege) === 0 || isGone(segment)) {
    throw refusal(operation, segment, pz, privilege);
  }
}

/** The memory was transferred away after it was registered. */
export function isGone(segment: LmrSegment): boolean {
  return segment.lmr.bytes.length !== segment.lmr.lengthBytes;
}

function refusal(operation: string, segment: LmrSegment, pz: Pz, privilege: number): DatError {
  const { lmr } = segment;
  const error = (code: DatType, subtype: DatSubtype, message: string, hint?: string): DatError =>
    new DatError(code, {
      subtype,
      operation,
      message: `memory region ${lmr.id} ${message}`,
      value: segment,
      ...(hint !== undefined && { hint }),
    });
  if (lmr.isFreed) return error('DAT_INVALID_HANDLE', 'DAT_INVALID_HANDLE_LMR', 'has been freed');
  const write = privilege === MemPrivileges.LOCAL_WRITE;
  if (lmr.pz !== pz) {
    const subtype = write ? 'DAT_PROTECTION_WRITE' : 'DAT_PROTECTION_READ';
    const message = `belongs to protection zone ${lmr.pz.id}, the queue to ${pz.id}`;
    return error('DAT_PROTECTION_VIOLATION', subtype, message);
  }
  if (isGone(segment)) {
    const hint = 'its ArrayBuffer was transferred after registration';
    return error('DAT_INVALID_STATE', 'DAT_INVALID_STATE_LMR_FREE', 'has lost its memory', hint);
  }
  const subtype = write ? 'DAT_PRIVILEGES_WRITE' : 'DAT_PRIVILEGES_READ';
  const name = write ? 'LOCAL_WRITE' : 'LOCAL_READ';
  return error('DAT_PRIVILEGES_VIOLATION', subtype, `was made without ${name}`);
}

/** A cookie: any safe integer that is not negative. It comes back in the event. */
export function checkCookie(operation: string, cookie: unknown): asserts cookie is number {
  if (isInteger(cookie, 0, Number.MAX_SAFE_INTEGER)) return;
  const position = positionOf(operation, 'cookie');
  throw invalid(operation, position, 'cookie', cookie, 'an integer from 0 to 2^53 - 1');
}

/** An argument of 32 bits: immediate data, a remote context. */
export function checkU32(operation: string, name: string, value: unknown): void {
  if (isInteger(value, 0, MAX_U32)) return;
  checkInteger(operation, positionOf(operation, name), name, value, 0, MAX_U32);
}

/** An operand of an atomic. */
export function checkOperand(operation: string, name: string, value: unknown): void {
  if (!isU64(value)) checkU64(operation, positionOf(operation, name), name, value);
}

/**
 * Segments of live regions of the adapter, whose memory is still there.
 * @throws DatError DAT_INVALID_PARAMETER, DAT_INVALID_HANDLE / DAT_INVALID_HANDLE_LMR,
 * DAT_INVALID_STATE / DAT_INVALID_STATE_LMR_FREE
 */
export function checkLiveSegments(
  operation: string,
  position: number,
  segments: unknown,
  core: IaCore,
): void {
  for (const segment of Array.isArray(segments) ? (segments as unknown[]) : [segments]) {
    if (!(segment instanceof LmrSegment)) {
      const expected = 'an LmrSegment, from lmr.segment(), or an array of them';
      throw invalid(operation, position, 'segments', segment, expected);
    }
    checkHandle(operation, Lmr, 'LMR', segment.lmr, core);
    if (isGone(segment)) throw refusal(operation, segment, segment.lmr.pz, 0);
  }
}
