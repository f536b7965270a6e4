/** Hints about memory for consumers, and the calls that DAT has for the kernel only. */
import { MemType } from '../common/constants.js';
import { checkInteger, checkOneOf, invalid } from '../../errors/guards.js';
import { checkHandle } from '../common/handle.js';
import type { AdapterState } from '../common/adapter-state.js';
import { notSupported } from '../common/unsupported.js';
import { Lmr } from './lmr.js';
import { hasLostMemory, LmrSegment, lostMemory, type Segments } from './segment.js';

/** Result of `ia.memTypeHint`. */
export interface MemTypeHint {
  readonly preferredLengthBytes: number;
  readonly preferredAlignmentBytes: number;
}

/** Memory is coherent: only the parameters are checked. */
export function checkSync(
  core: AdapterState,
  operation: 'ia.syncRdmaRead' | 'ia.syncRdmaWrite',
  segments: Segments,
): void {
  core.begin(operation, { segments });
  checkLiveSegments(operation, segments, core);
}

/**
 * Checks for segments of live regions of the adapter, whose memory is still there.
 * @throws DatError DAT_INVALID_PARAMETER, DAT_INVALID_HANDLE / DAT_INVALID_HANDLE_LMR,
 * DAT_INVALID_STATE / DAT_INVALID_STATE_LMR_FREE
 */
function checkLiveSegments(operation: string, segments: unknown, core: AdapterState): void {
  for (const segment of Array.isArray(segments) ? (segments as unknown[]) : [segments]) {
    if (!(segment instanceof LmrSegment)) {
      const expected = 'an LmrSegment, from lmr.segment(), or an array of them';
      throw invalid(operation, 'segments', segment, expected);
    }
    checkHandle(operation, Lmr, 'LMR', segment.lmr, core);
    if (hasLostMemory(segment)) throw lostMemory(operation, segment);
  }
}

export function memTypeHint(core: AdapterState, memType: number, lengthBytes: number): MemTypeHint {
  const operation = core.begin('ia.memTypeHint', { memType, lengthBytes });
  checkOneOf(operation, 'memType', memType, Object.values(MemType));
  checkInteger(operation, 'lengthBytes', lengthBytes, 1, core.context.maxRegionBytes);
  if (!USER_TYPES.includes(memType)) throw kernelMemory(operation);
  const alignment = memType === MemType.FILE ? PAGE_BYTES : OPTIMAL_ALIGNMENT;
  return { preferredLengthBytes: lengthBytes, preferredAlignmentBytes: alignment };
}

/** @throws DatError DAT_MODEL_NOT_SUPPORTED, always */
export function refuseKernelMemory(core: AdapterState, operation: string): never {
  core.begin(operation);
  throw kernelMemory(operation);
}

function kernelMemory(operation: string): Error {
  const why = 'it is of physical memory, which a process does not see';
  return notSupported(operation, why, 'use ia.createLmr() or ia.allocate()');
}

const PAGE_BYTES = 4096;
const OPTIMAL_ALIGNMENT = 256;
const USER_TYPES: readonly number[] = [
  MemType.VIRTUAL,
  MemType.LMR,
  MemType.SHARED_VIRTUAL,
  MemType.FILE,
];
