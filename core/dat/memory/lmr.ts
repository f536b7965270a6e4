/**
 * Local memory region (dat_lmr): memory that requests use, and that peers reach by its rmrContext.
 */
import { hex, showAs, Symbolic } from '../../spi/checks/index.js';
import { DatError, spiCall } from '../../errors/index.js';
import type { MemoryRegion } from '../../spi/index.js';
import {
  flagNames,
  MemPrivileges,
  type MemTypeName,
  REMOTE_PRIVILEGES,
  VaType,
} from '../common/constants.js';
import { checkInteger } from '../../errors/guards.js';
import { begin, Handle } from '../common/handle.js';
import type { AdapterState } from '../common/adapter-state.js';
import type { Pz } from './pz.js';
import { LmrSegment } from './segment.js';
import type { Ia } from '../ia/ia.js';

/** @internal parameters of a region */
export interface LmrInit {
  readonly pz: Pz;
  readonly bytes: Uint8Array;
  readonly privileges: number;
  readonly region: MemoryRegion;
  readonly memType: MemTypeName;
  readonly zeroBased: boolean;
  readonly onFreed: (() => void) | undefined;
}

/** Result of `lmr.query()` (DAT_LMR_PARAM). */
export interface LmrParameters {
  readonly ia: Ia;
  readonly memType: MemTypeName;
  /** The memory itself. */
  readonly region: Uint8Array;
  readonly lengthBytes: number;
  readonly pz: Pz;
  readonly privileges: number;
  /** A number of VaType. */
  readonly vaType: number;
  readonly lmrContext: number;
  readonly rmrContext: number | undefined;
  readonly registeredSizeBytes: number;
  readonly registeredAddress: bigint;
  /** Windows bound to it, including pending binds. */
  readonly boundRmrs: number;
}

/** Made by `ia.createLmr()` (existing memory), `ia.allocate()` or `ia.mapFile()`. */
export class Lmr extends Handle {
  static {
    showAs(this, 'Lmr', ({ id, lengthBytes, address, privileges, inFlight, isFreed: freed }) => {
      const names = new Symbolic(flagNames(MemPrivileges, privileges));
      return { id, lengthBytes, address: hex(address), privileges: names, inFlight, freed };
    });
  }

  readonly handleType = 'LMR';
  /** Address of the first byte as a peer sees it, in words of 32 bits. */
  readonly addressLo: number;
  readonly addressHi: number;
  readonly lengthBytes: number;
  /** Context of local segments (lkey). */
  readonly lmrContext: number;
  /** Context that peers use for this region (rkey); undefined without a remote privilege. */
  readonly rmrContext: number | undefined;
  private readonly closeContext: (() => void) | undefined;
  /** @internal segments of posted requests not known to be finished */
  inFlight = 0;
  /** @internal windows bound to it, including pending binds */
  boundRmrs = 0;
  readonly pz: Pz;
  /** The registered memory itself. */
  readonly bytes: Uint8Array;
  readonly privileges: number;
  readonly memType: MemTypeName;
  private readonly region: MemoryRegion;

  /** @internal */
  constructor(
    /** @internal */
    readonly core: AdapterState,
    private readonly init: LmrInit,
  ) {
    super();
    const { pz, bytes, privileges, memType, region } = init;
    this.pz = pz;
    this.bytes = bytes;
    this.privileges = privileges;
    this.memType = memType;
    this.region = region;
    this.addressLo = Number(region.iova & 0xffffffffn);
    this.addressHi = Number(region.iova >> 32n);
    this.lengthBytes = bytes.byteLength;
    this.lmrContext = region.lkey;
    this.rmrContext = (privileges & REMOTE_PRIVILEGES) === 0 ? undefined : region.rkey;
    pz.users++;
    if (this.rmrContext !== undefined) {
      this.closeContext = pz.rmrContexts.open(this.rmrContext, this, 0, this.lengthBytes);
    }
  }

  get ia(): Ia {
    return this.core.ia;
  }

  /**
   * Virtual address of the first byte as a peer sees it: random, page-aligned, not a pointer; 0 in
   * a zero-based region.
   */
  get address(): bigint {
    return this.region.iova;
  }

  /**
   * A part of the region for posting. Create it once, post it often, move it with `set`.
   * @param offsetBytes default 0
   * @param lengthBytes default the rest of the region (at most 2^32 - 1)
   * @throws DatError DAT_INVALID_PARAMETER outside of the region
   */
  segment(offsetBytes = 0, lengthBytes?: number): LmrSegment {
    this.assertLive('lmr.segment');
    checkInteger('lmr.segment', 'offsetBytes', offsetBytes, 0, this.lengthBytes);
    const rest = Math.min(this.lengthBytes - offsetBytes, 2 ** 32 - 1);
    return new LmrSegment(this, offsetBytes, lengthBytes ?? rest);
  }

  /** dat_lmr_query. */
  query(): LmrParameters {
    this.assertLive('lmr.query');
    const { ia, memType, bytes, lengthBytes, pz, privileges, lmrContext, rmrContext } = this;
    return {
      ia,
      memType,
      region: bytes,
      lengthBytes,
      pz,
      privileges,
      vaType: this.init.zeroBased ? VaType.ZB : VaType.VA,
      lmrContext,
      rmrContext,
      registeredSizeBytes: this.region.lengthBytes,
      registeredAddress: this.address,
      boundRmrs: this.boundRmrs,
    };
  }

  /** True if addresses begin at 0: windows cannot be bound to it. */
  get isZeroBased(): boolean {
    return this.init.zeroBased;
  }

  /**
   * Deregisters the memory (dat_lmr_free), which is the consumer's alone from then on.
   * @throws DatError DAT_INVALID_STATE / DAT_INVALID_STATE_LMR_IN_USE while posted requests use it:
   * a request counts until its completion (or that of a later signalled one of its queue) has been
   * scanned, or its endpoint is reset or freed; and while windows are bound to it
   */
  free(): void {
    begin(this, 'lmr.free');
    if (this.inFlight > 0 || this.boundRmrs > 0) this.core.takeInCompletions();
    if (this.inFlight > 0) {
      throw new DatError('DAT_INVALID_STATE', {
        subtype: 'DAT_INVALID_STATE_LMR_IN_USE',
        operation: 'lmr.free',
        message: `${this.inFlight} segments of posted requests use memory region ${this.id}`,
        hint: SUPPRESSED_HINT,
        value: this.inFlight,
      });
    }
    if (this.boundRmrs > 0) {
      throw new DatError('DAT_INVALID_STATE', {
        subtype: 'DAT_INVALID_STATE_LMR_IN_USE',
        operation: 'lmr.free',
        message: `${this.boundRmrs} windows are bound to memory region ${this.id}`,
        hint: 'unbind or free them first',
        value: this.boundRmrs,
      });
    }
    this.destroy('lmr.free');
  }

  /** @internal teardown: requests in flight have been discarded with their endpoint */
  destroy(by: string): void {
    spiCall({ operation: by }, () => this.region.destroy());
    this.closeContext?.();
    this.markFreed(by);
    this.pz.users--;
    this.init.onFreed?.();
    this.core.forget(this);
  }

  [Symbol.dispose](): void {
    if (!this.isFreed) this.free();
  }
}

const SUPPRESSED_HINT =
  'wait for their completions, or reset or free the endpoint; ' +
  'suppressed requests are known to have ended when a later one shows';
