/** What a consumer asks about memory, and what DAT has for the kernel's alone. */
import { MemType } from '../common/constants.js';
import { checkInteger, checkOneOf } from '../../errors/guards.js';
import type { IaCore } from '../ia/core.js';
import { checkLiveSegments } from '../work/post-checks.js';
import { notSupported } from './lmr-options.js';
import type { Segments } from './segment.js';

/** What `ia.memTypeHint` says. */
export interface MemTypeHint {
  readonly preferredLengthBytes: number;
  readonly preferredAlignmentBytes: number;
}

/** Memory is coherent: only the parameters are checked. */
export function checkSync(
  core: IaCore,
  operation: 'ia.syncRdmaRead' | 'ia.syncRdmaWrite',
  segments: Segments,
): void {
  core.begin(operation, { segments });
  checkLiveSegments(operation, 2, segments, core);
}

export function memTypeHint(core: IaCore, memType: number, lengthBytes: number): MemTypeHint {
  const operation = 'ia.memTypeHint';
  core.begin(operation, { memType, lengthBytes });
  checkOneOf(operation, 2, 'memType', memType, Object.values(MemType));
  const most = core.context.device.attributes.maxMemoryRegionBytes;
  checkInteger(operation, 3, 'lengthBytes', lengthBytes, 1, most);
  if (!USER_TYPES.includes(memType)) throw kernelMemory(operation);
  const alignment = memType === MemType.FILE ? PAGE_BYTES : OPTIMAL_ALIGNMENT;
  return { preferredLengthBytes: lengthBytes, preferredAlignmentBytes: alignment };
}

/** @throws DatError DAT_MODEL_NOT_SUPPORTED, always */
export function refuseKernelMemory(core: IaCore, operation: string): never {
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
