/** Creates memory regions: from existing memory, allocated memory, or a file. */
import { argumentSubtype } from '../../errors/call-arguments.js';
import { checkInteger, invalid } from '../../errors/guards.js';
import { DatError, type DatType, spiCall } from '../../errors/index.js';
import {
  Access,
  type Device,
  type MemoryRegion,
  type ProtectionDomain,
  type Random,
  randomIova,
} from '../../spi/index.js';
import type { AdapterServices, AdapterState } from '../common/adapter-state.js';
import { accessOf, type MemTypeName } from '../common/constants.js';
import { checkHandle } from '../common/handle.js';
import { notSupported, OUT_OF } from '../common/unsupported.js';
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
import { Lmr } from './lmr.js';
import { shareMemory } from './shared-memory.js';

// Memory that may be registered. A device keeps the address of registered memory. Memory that can
// move, shrink or go away, or that is shared with unrelated data, is refused with the reason.

/** @throws DatError DAT_LENGTH_ERROR for more bytes than the device registers in one region */
function checkRegistrable(
  operation: string,
  { maxRegionBytes }: AdapterServices,
  lengthBytes: number,
): void {
  if (lengthBytes <= maxRegionBytes) return;
  throw new DatError('DAT_LENGTH_ERROR', {
    operation,
    message:
      `memory has ${lengthBytes} bytes; ` +
      `a region of this adapter has at most ${maxRegionBytes}`,
    hint: 'register parts of it: views of an ArrayBuffer, each a region of its own',
    value: lengthBytes,
  });
}

/**
 * The bytes of memory that is given to `createLmr`. A SharedArrayBuffer is allowed: other threads
 * see peers' writes, in no better order than threads see each other's.
 */
function checkMemory(operation: string, context: AdapterServices, memory: unknown): Uint8Array {
  if (isBuffer(memory)) {
    checkRegistrable(operation, context, memory.byteLength);
    const view = isDetached(memory) ? undefined : wrap(memory);
    return checkMemory(operation, context, view);
  }
  if (!ArrayBuffer.isView(memory)) {
    const why =
      'an ArrayBuffer, a SharedArrayBuffer or a view of one (attached: not transferred away)';
    throw invalid(operation, 'memory', memory, why);
  }
  checkRegistrable(operation, context, memory.byteLength);
  const refuse = (why: string, hint: string, code: DatType = 'DAT_INVALID_PARAMETER'): DatError =>
    new DatError(code, {
      ...(code === 'DAT_INVALID_PARAMETER' && {
        subtype: argumentSubtype(operation, 'memory'),
      }),
      operation,
      message: `memory ${why}`,
      hint,
      value: memory,
    });
  const { buffer } = memory;
  if (isDetached(buffer)) {
    throw refuse('is detached: its ArrayBuffer was transferred', 'register before transferring');
  }
  if (isElastic(buffer)) {
    throw refuse('is resizable: its bytes may vanish while a peer writes', 'use a fixed length');
  }
  if (memory.byteLength === 0) {
    throw refuse('has 0 bytes', 'register 1 byte at least', 'DAT_LENGTH_ERROR');
  }
  if (isPooled(memory, buffer)) {
    throw refuse(
      `is ${memory.byteLength} bytes of Node's shared pool of ${buffer.byteLength}`,
      'use ia.allocate() or Buffer.allocUnsafeSlow()',
    );
  }
  return new Uint8Array(buffer, memory.byteOffset, memory.byteLength);
}

/** A web page without isolation has SharedArrayBuffers, but no such name. */
function isBuffer(memory: unknown): memory is ArrayBufferLike {
  return /^\[object (?:Shared)?ArrayBuffer\]$/.test(Object.prototype.toString.call(memory));
}

/**
 * Node 20 has no `ArrayBuffer.prototype.detached`; a detached one has no bytes and takes no view.
 */
function isDetached(buffer: ArrayBufferLike): boolean {
  if (!(buffer instanceof ArrayBuffer) || buffer.byteLength !== 0) return false;
  try {
    return wrap(buffer).byteLength !== 0;
  } catch {
    return true;
  }
}

/** True if its length may change: a resizable ArrayBuffer, a growable SharedArrayBuffer. */
function isElastic(buffer: ArrayBufferLike): boolean {
  const { resizable, growable } = buffer as { resizable?: boolean; growable?: boolean };
  return resizable === true || growable === true;
}

function wrap(buffer: ArrayBufferLike): Uint8Array {
  return new Uint8Array(buffer);
}

/**
 * Size of a slab of small Buffers: from Node 26 on a little more than Buffer.poolSize. 0 where
 * there are no Buffers.
 */
const POOL_BYTES = 'Buffer' in globalThis ? Buffer.allocUnsafe(1).buffer.byteLength : 0;

/** A small Buffer that is a part of a slab: its neighbours belong to other code. */
function isPooled(memory: ArrayBufferView, buffer: ArrayBufferLike): boolean {
  return (
    buffer.byteLength <= POOL_BYTES &&
    Buffer.isBuffer(memory) &&
    memory.byteLength < buffer.byteLength
  );
}

// Registers at an address that tells a peer nothing.

/** Errors of a device that cannot use that address: it knows only the memory's own. */
const REFUSALS: ReadonlySet<unknown> = new Set(['EINVAL', 'EOPNOTSUPP']);

/**
 * Registers at a random address. If the device wants address and memory to agree within a page, or
 * knows only the memory's own address, the provider chooses.
 * @throws SpiError
 */
function registerAtRandom(
  pd: ProtectionDomain,
  bytes: Uint8Array,
  access: number,
  random: Random,
): MemoryRegion {
  try {
    return pd.registerMemory(bytes, access, randomIova(random));
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && REFUSALS.has(error.code))) throw error;
    return pd.registerMemory(bytes, access);
  }
}

/** Memory that `createLmr` accepts. */
export type LmrMemory = ArrayBufferLike | ArrayBufferView | Lmr;

export function createLmr(core: AdapterState, memory: LmrMemory, options: CreateLmrOptions): Lmr {
  const operation = core.begin('ia.createLmr', { memory, privileges: privilegesText(options) });
  const checked = checkLmrOptions(operation, core, options, ['sharedAs']);
  const key = checkSharedAs(operation, options);
  if (memory instanceof Lmr) checkHandle(operation, Lmr, 'LMR', memory, core);
  const source = memory instanceof Lmr ? memory.bytes : memory;
  const bytes = checkMemory(operation, core.context, source);
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

export function allocateLmr(
  core: AdapterState,
  lengthBytes: number,
  options: AllocateOptions,
): Lmr {
  const privileges = privilegesText(options);
  const operation = core.begin('ia.allocate', { lengthBytes, privileges });
  const { device } = core.context;
  checkInteger(operation, 'lengthBytes', lengthBytes, 1, core.context.maxRegionBytes);
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

/** @throws DatError DAT_MODEL_NOT_SUPPORTED; as `ia.allocate` for shared memory */
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

export function mapFileLmr(core: AdapterState, fd: number, options: MapFileOptions): Lmr {
  const operation = core.begin('ia.mapFile', { fd, privileges: privilegesText(options) });
  const { device } = core.context;
  const more = ['offsetBytes', 'lengthBytes', 'shared'];
  const checked = checkLmrOptions(operation, core, options, more);
  const file = checkFileOptions(operation, core.context, fd, options);
  if (device.mapFile === undefined) {
    const hint = 'softroce has it with its native port; else read the file into ia.allocate()';
    throw notSupported(operation, 'this provider maps no files', hint);
  }
  const bytes = spiCall({ operation, value: fd }, () => device.mapFile?.(file));
  return register(core, operation, bytes as Uint8Array, checked, 'FILE');
}

function register(
  core: AdapterState,
  operation: string,
  bytes: Uint8Array,
  options: CheckedLmrOptions,
  memType: MemTypeName,
  onFreed?: () => void,
): Lmr {
  const { pz, privileges, zeroBased } = options;
  checkRegistrable(operation, core.context, bytes.byteLength);
  const access = accessOf(privileges) | bindAccess(core);
  const region = spiCall({ operation, value: bytes.byteLength, map: OUT_OF.regions }, () =>
    zeroBased
      ? registerZeroBased(operation, pz.pd.registerMemory(bytes, access | Access.ZERO_BASED))
      : registerAtRandom(pz.pd, bytes, access, core.context.random),
  );
  return core.adopt(new Lmr(core, { pz, bytes, privileges, region, memType, zeroBased, onFreed }));
}

/** DAT allows windows on any region. */
function bindAccess({ context }: AdapterState): number {
  return context.device.capabilities.has('memory-window') ? Access.MW_BIND : 0;
}

function registerZeroBased(operation: string, region: MemoryRegion): MemoryRegion {
  if (region.iova === 0n) return region;
  region.destroy();
  const hint = 'register it without VaType.ZB, unless ia.query().ia.zbSupported';
  throw notSupported(operation, 'this provider has no zero-based regions', hint);
}
