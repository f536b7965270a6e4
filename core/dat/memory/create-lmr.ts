/** Making memory regions: of memory that is there, allocated, or a file's. */
import { spiCall } from '../../errors/index.js';
import { Access, type Device, type MemoryRegion } from '../../spi/index.js';
import type { MemTypeName } from '../common/constants.js';
import { checkInteger } from '../../errors/guards.js';
import { checkHandle } from '../common/handle.js';
import { accessOf } from '../common/privileges.js';
import type { IaCore } from '../common/adapter-state.js';
import { notSupported, OUT_OF } from '../common/unsupported.js';
import { registerAtRandom } from './iova.js';
import { Lmr } from './lmr.js';
import {
  type AllocateOptions,
  type CheckedLmrOptions,
  checkFileOptions,
  checkLmrOptions,
  checkShared,
  checkSharedAs,
  type CreateLmrOptions,
  type MapFileOptions,
  privilegesText,
} from './lmr-options.js';
import { checkMemory } from './memory-source.js';
import { shareMemory } from './shared-memory.js';
import { checkRegistrable, mostRegionBytes } from './view-limit.js';

/** Memory that `createLmr` takes. */
export type LmrMemory = ArrayBufferLike | ArrayBufferView | Lmr;

export function createLmr(core: IaCore, memory: LmrMemory, options: CreateLmrOptions): Lmr {
  const operation = core.begin('ia.createLmr', { memory, privileges: privilegesText(options) });
  const checked = checkLmrOptions(operation, core, options, ['sharedAs']);
  const key = checkSharedAs(operation, options);
  if (memory instanceof Lmr) checkHandle(operation, Lmr, 'LMR', memory, core);
  const source = memory instanceof Lmr ? memory.bytes : memory;
  const bytes = checkMemory(operation, 2, source);
  if (key === undefined) {
    return register(core, operation, bytes, checked, memory instanceof Lmr ? 'LMR' : 'VIRTUAL');
  }
  const leave = shareMemory(operation, key, bytes);
  try {
    return register(core, operation, bytes, checked, 'SHARED_VIRTUAL', leave);
  } catch (error) {
    leave();
    throw error;
  }
}

export function allocateLmr(core: IaCore, lengthBytes: number, options: AllocateOptions): Lmr {
  const privileges = privilegesText(options);
  const operation = core.begin('ia.allocate', { lengthBytes, privileges });
  const { device } = core.context;
  checkInteger(operation, 1, 'lengthBytes', lengthBytes, 1, mostRegionBytes(device));
  const checked = checkLmrOptions(operation, core, options, ['shared']);
  const shared = checkShared(operation, options);
  const buffer =
    shared === undefined
      ? spiCall({ operation, value: lengthBytes }, () => device.allocate(lengthBytes))
      : sharedBuffer(operation, device, shared, lengthBytes);
  core.counts.allocated(lengthBytes);
  const bytes = new Uint8Array(buffer, 0, lengthBytes);
  return register(
    core,
    operation,
    bytes,
    checked,
    shared === undefined ? 'VIRTUAL' : 'SHARED_VIRTUAL',
  );
}

/** @throws DatError DAT_MODEL_NOT_SUPPORTED; as `ia.allocate` says of shared memory */
function sharedBuffer(
  operation: string,
  device: Device,
  name: string,
  lengthBytes: number,
): ArrayBuffer {
  if (device.shareMemory === undefined) {
    const hint = 'softroce has it with its native port, and verbs; or map a file: ia.mapFile()';
    throw notSupported(operation, 'this provider has no memory by a name', hint);
  }
  const hints = {
    EINVAL: 'ask for as many bytes as the others, or take another name',
    EACCES: 'take another name',
    ETIMEDOUT: 'see why that process does not run, or take another name',
  };
  return spiCall({ operation, value: name, hints }, () => device.shareMemory!(name, lengthBytes));
}

export function mapFileLmr(core: IaCore, fd: number, options: MapFileOptions): Lmr {
  const operation = core.begin('ia.mapFile', { fd, privileges: privilegesText(options) });
  const { device } = core.context;
  const more = ['offsetBytes', 'lengthBytes', 'shared'];
  const checked = checkLmrOptions(operation, core, options, more);
  const file = checkFileOptions(operation, fd, options);
  if (device.mapFile === undefined) {
    const hint = 'softroce has it with its native port; else read the file into ia.allocate()';
    throw notSupported(operation, 'this provider maps no files', hint);
  }
  const bytes = spiCall({ operation, value: fd }, () => device.mapFile?.(file));
  return register(core, operation, bytes as Uint8Array, checked, 'FILE');
}

function register(
  core: IaCore,
  operation: string,
  bytes: Uint8Array,
  options: CheckedLmrOptions,
  memType: MemTypeName,
  onFreed?: () => void,
): Lmr {
  const { pz, privileges, zeroBased } = options;
  checkRegistrable(operation, core.context.device, bytes.byteLength);
  const access = accessOf(privileges) | bindAccess(core);
  const region = spiCall({ operation, value: bytes.byteLength, map: OUT_OF.regions }, () =>
    zeroBased
      ? registerZeroBased(operation, pz.pd.registerMemory(bytes, access | Access.ZERO_BASED))
      : registerAtRandom(pz.pd, bytes, access, core.context.random),
  );
  return core.adopt(new Lmr(core, { pz, bytes, privileges, region, memType, zeroBased, onFreed }));
}

/** DAT lets windows be bound to any region. */
function bindAccess({ context }: IaCore): number {
  return context.device.capabilities.has('memory-window') ? Access.MW_BIND : 0;
}

function registerZeroBased(operation: string, region: MemoryRegion): MemoryRegion {
  if (region.iova === 0n) return region;
  region.destroy();
  const hint = 'register it without VaType.ZB, unless ia.query().ia.zbSupported';
  throw notSupported(operation, 'this provider has no zero-based regions', hint);
}
