/** The calls of an interface adapter that make memory regions, and those that look after them. */
import { spiCall } from '../../errors/index.js';
import { Access, type MemoryRegion } from '../../spi/index.js';
import { MemType, type MemTypeName } from '../common/constants.js';
import { checkInteger, checkOneOf } from '../common/guards.js';
import { checkHandle } from '../common/handle.js';
import { IaBase } from '../ia/base.js';
import { registerAtRandom } from './iova.js';
import { Lmr } from './lmr.js';
import {
  type CheckedLmrOptions,
  checkFileOptions,
  checkLmrOptions,
  checkSharedAs,
  type CreateLmrOptions,
  type LmrOptions,
  type MapFileOptions,
  notSupported,
  privilegesText,
} from './lmr-options.js';
import { checkMemory } from './memory-source.js';
import { checkLiveSegments } from '../work/post-checks.js';
import { accessOf } from '../common/privileges.js';
import type { Segments } from './segment.js';
import { shareMemory } from './shared-memory.js';

/** Memory that `createLmr` takes. */
export type LmrMemory = ArrayBufferLike | ArrayBufferView | Lmr;

/** What `ia.memTypeHint` says. */
export interface MemTypeHint {
  readonly preferredLengthBytes: number;
  readonly preferredAlignmentBytes: number;
}

export abstract class IaRegions extends IaBase {
  /**
   * Registers existing memory (dat_lmr_create). It stays the consumer's to read and write, and must
   * not be transferred away before `lmr.free()`.
   * @param memory an ArrayBuffer, a SharedArrayBuffer or a view: not pooled, resizable or detached;
   * or another region, whose memory is registered once more (DAT_MEM_TYPE_LMR), with privileges and
   * a zone of its own
   * @throws DatError DAT_INVALID_PARAMETER, DAT_LENGTH_ERROR, DAT_INVALID_HANDLE (pz, region),
   * DAT_INSUFFICIENT_RESOURCES; DAT_INVALID_STATE when `sharedAs` stands for other memory;
   * DAT_MODEL_NOT_SUPPORTED (VaType.ZB, when the IA attribute `zbSupported` is false)
   */
  createLmr(memory: LmrMemory, options: CreateLmrOptions): Lmr {
    const operation = 'ia.createLmr';
    this.begin(operation, { memory, privileges: privilegesText(options) });
    const checked = checkLmrOptions(operation, this.self, options, ['sharedAs']);
    const key = checkSharedAs(operation, options);
    if (memory instanceof Lmr) checkHandle(operation, Lmr, 'LMR', memory, this.self);
    const source = memory instanceof Lmr ? memory.bytes : memory;
    const bytes = checkMemory(operation, 2, source);
    if (key === undefined) {
      return this.register(operation, bytes, checked, memory instanceof Lmr ? 'LMR' : 'VIRTUAL');
    }
    const leave = shareMemory(operation, key, bytes);
    try {
      return this.register(operation, bytes, checked, 'SHARED_VIRTUAL', leave);
    } catch (error) {
      leave();
      throw error;
    }
  }

  /**
   * Allocates memory that suits the device, zeroed, and registers it.
   * @param lengthBytes 1 up to `maxLmrBlockSize`
   * @throws DatError as `createLmr`
   */
  allocate(lengthBytes: number, options: LmrOptions): Lmr {
    const operation = 'ia.allocate';
    this.begin(operation, { lengthBytes, privileges: privilegesText(options) });
    const { device } = this.context;
    const most = device.attributes.maxMemoryRegionBytes;
    checkInteger(operation, 1, 'lengthBytes', lengthBytes, 1, most);
    const checked = checkLmrOptions(operation, this.self, options);
    const buffer = spiCall({ operation, value: lengthBytes }, () => device.allocate(lengthBytes));
    this.counts.allocated(lengthBytes);
    return this.register(operation, new Uint8Array(buffer, 0, lengthBytes), checked, 'VIRTUAL');
  }

  /**
   * Maps a part of a file into memory and registers it: peers read and write the file itself. The
   * mapping lives for as long as anything refers to `lmr.bytes`; `fsync` of the file makes it
   * durable. Do not cut the file short meanwhile: touching what is gone ends the process.
   * @param fd an open file descriptor (`fs.openSync`); it may be closed afterwards
   * @throws DatError DAT_MODEL_NOT_SUPPORTED where the provider maps no files;
   * DAT_INVALID_PARAMETER (beyond the end of the file, no regular file);
   * DAT_PRIVILEGES_VIOLATION (shared, and not open for reading and writing); as `createLmr`
   */
  mapFile(fd: number, options: MapFileOptions): Lmr {
    const operation = 'ia.mapFile';
    this.begin(operation, { fd, privileges: privilegesText(options) });
    const { device } = this.context;
    const more = ['offsetBytes', 'lengthBytes', 'shared'];
    const checked = checkLmrOptions(operation, this.self, options, more);
    const file = checkFileOptions(operation, fd, options);
    if (device.mapFile === undefined) {
      const hint = 'softroce has it with its native port; else read the file into ia.allocate()';
      throw notSupported(operation, 'this provider maps no files', hint);
    }
    const bytes = spiCall({ operation, value: fd }, () => device.mapFile?.(file));
    return this.register(operation, bytes as Uint8Array, checked, 'FILE');
  }

  /**
   * Before peers read what has been written here (dat_lmr_sync_rdma_read). The provider attribute
   * `lmrSyncReq` is false: memory is coherent, and this only checks.
   * @throws DatError DAT_INVALID_PARAMETER, DAT_INVALID_HANDLE (freed or foreign region)
   */
  syncRdmaRead(segments: Segments): void {
    this.begin('ia.syncRdmaRead', { segments });
    checkLiveSegments('ia.syncRdmaRead', 2, segments, this.self);
  }

  /** Before looking at what peers have written (dat_lmr_sync_rdma_write); as `syncRdmaRead`. */
  syncRdmaWrite(segments: Segments): void {
    this.begin('ia.syncRdmaWrite', { segments });
    checkLiveSegments('ia.syncRdmaWrite', 2, segments, this.self);
  }

  /**
   * What suits the device best, before memory is registered (kDAPL dat_ia_memtype_hint).
   * @param memType a number of MemType
   * @throws DatError DAT_INVALID_PARAMETER; DAT_MODEL_NOT_SUPPORTED for the kernel's memory types
   */
  memTypeHint(memType: number, lengthBytes: number): MemTypeHint {
    const operation = 'ia.memTypeHint';
    this.begin(operation, { memType, lengthBytes });
    checkOneOf(operation, 2, 'memType', memType, Object.values(MemType));
    const most = this.context.device.attributes.maxMemoryRegionBytes;
    checkInteger(operation, 3, 'lengthBytes', lengthBytes, 1, most);
    if (!USER_TYPES.includes(memType)) throw kernelMemory(operation);
    const alignment = memType === MemType.FILE ? PAGE_BYTES : OPTIMAL_ALIGNMENT;
    return { preferredLengthBytes: lengthBytes, preferredAlignmentBytes: alignment };
  }

  /**
   * The region of all physical memory (kDAPL dat_ia_reserved_lmr): the IA attribute
   * `reservedLmrSupported` is false, and a process is never given such a key.
   * @throws DatError DAT_MODEL_NOT_SUPPORTED, always
   */
  reservedLmr(): never {
    this.begin('ia.reservedLmr');
    throw kernelMemory('ia.reservedLmr');
  }

  /**
   * An empty region for fast registration of physical pages (kDAPL dat_lmr_allocate, dat_lmr_fmr,
   * dat_lmr_invalidate). For access that is granted and withdrawn in the order of requests, bind a
   * window: `ia.createRmr`.
   * @throws DatError DAT_MODEL_NOT_SUPPORTED, always
   */
  allocateFastLmr(): never {
    this.begin('ia.allocateFastLmr');
    throw kernelMemory('ia.allocateFastLmr');
  }

  private register(
    operation: string,
    bytes: Uint8Array,
    options: CheckedLmrOptions,
    memType: MemTypeName,
    onFreed?: () => void,
  ): Lmr {
    const { pz, privileges, zeroBased } = options;
    const access = accessOf(privileges) | this.bindAccess;
    const region = spiCall(
      { operation, value: bytes.byteLength, map: { ENOMEM: NO_REGION } },
      () =>
        zeroBased
          ? registerZeroBased(operation, pz.pd.registerMemory(bytes, access | Access.ZERO_BASED))
          : registerAtRandom(pz.pd, bytes, access, this.context.random),
    );
    return this.adopt(
      new Lmr(this.self, { pz, bytes, privileges, region, memType, zeroBased, onFreed }),
    );
  }

  /** DAT lets windows be bound to any region. */
  private get bindAccess(): number {
    return this.context.device.capabilities.has('memory-window') ? Access.MW_BIND : 0;
  }
}

function registerZeroBased(operation: string, region: MemoryRegion): MemoryRegion {
  if (region.iova === 0n) return region;
  region.destroy();
  const hint = 'ia.query().ia.zbSupported tells';
  throw notSupported(operation, 'this provider has no zero-based regions', hint);
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
const NO_REGION = ['DAT_INSUFFICIENT_RESOURCES', 'DAT_RESOURCE_MEMORY_REGION'] as const;
