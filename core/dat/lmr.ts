/**
 * Local memory region (dat_lmr): memory that requests use, and that peers reach by its rmrContext.
 */
import { inspect } from 'node:util';
import { DatError, spiCall } from '../errors/index.js';
import type { MemoryRegion } from '../spi/index.js';
import { flagNames, MemPrivileges } from './constants.js';
import { checkInteger } from './guards.js';
import { DatHandle } from './handle.js';
import type { Ia } from './ia.js';
import type { Pz } from './pz.js';
import { REMOTE_PRIVILEGES } from './privileges.js';
import { LmrSegment } from './segment.js';

/** What `ia.createLmr` and `ia.allocate` take. */
export interface LmrOptions {
  readonly pz: Pz;
  /** Bit set of MemPrivileges; default LOCAL_READ | LOCAL_WRITE: no peer gets in. */
  readonly privileges?: number;
}

/** Made by `ia.createLmr()` (existing memory) or `ia.allocate()`. */
export class Lmr extends DatHandle {
  readonly handleType = 'LMR';
  /** Address of the first byte as a peer sees it, in words of 32 bits. */
  readonly addressLo: number;
  readonly addressHi: number;
  readonly lengthBytes: number;
  /** Context of local segments (lkey). */
  readonly lmrContext: number;
  /** What a peer names to reach this region (rkey); undefined without a remote privilege. */
  readonly rmrContext: number | undefined;
  private readonly closeContext: (() => void) | undefined;
  /** @internal segments of posted requests that are not known to be finished */
  inFlight = 0;

  /** @internal */
  constructor(
    readonly ia: Ia,
    readonly pz: Pz,
    /** The registered memory itself. */
    readonly bytes: Uint8Array,
    readonly privileges: number,
    private readonly region: MemoryRegion,
  ) {
    super();
    this.addressLo = Number(region.iova & 0xffffffffn);
    this.addressHi = Number(region.iova >> 32n);
    this.lengthBytes = bytes.byteLength;
    this.lmrContext = region.lkey;
    this.rmrContext = (privileges & REMOTE_PRIVILEGES) === 0 ? undefined : region.rkey;
    pz.users++;
    if (this.rmrContext !== undefined) {
      this.closeContext = ia.rmrContexts.open(this.rmrContext, this, 0, this.lengthBytes);
    }
  }

  /** Virtual address of the first byte as a peer sees it: random, page-aligned, not a pointer. */
  get address(): bigint {
    return this.region.iova;
  }

  /**
   * A part of the region for posting. Make it once, post it often, move it with `set`.
   * @param offsetBytes default 0
   * @param lengthBytes default the rest of the region (at most 2^32 - 1)
   * @throws DatError DAT_INVALID_PARAMETER outside of the region
   */
  segment(offsetBytes = 0, lengthBytes?: number): LmrSegment {
    this.assertLive('lmr.segment');
    checkInteger('lmr.segment', 1, 'offsetBytes', offsetBytes, 0, this.lengthBytes);
    const rest = Math.min(this.lengthBytes - offsetBytes, 2 ** 32 - 1);
    return new LmrSegment(this, offsetBytes, lengthBytes ?? rest);
  }

  /**
   * Deregisters (dat_lmr_free). The memory is the consumer's again.
   * @throws DatError DAT_INVALID_STATE / DAT_INVALID_STATE_LMR_IN_USE while posted requests use it:
   * a request counts until its completion (or that of a later signalled one of its queue) has been
   * taken in, or its endpoint is reset or freed
   */
  free(): void {
    this.assertLive('lmr.free');
    this.ia.context.trace?.('lmr.free', { lmr: this.id });
    if (this.inFlight > 0) this.ia.takeInCompletions();
    if (this.inFlight > 0) {
      throw new DatError('DAT_INVALID_STATE', {
        subtype: 'DAT_INVALID_STATE_LMR_IN_USE',
        operation: 'lmr.free',
        message: `${this.inFlight} segments of posted requests use memory region ${this.id}`,
        hint: SUPPRESSED_HINT,
        value: this.inFlight,
      });
    }
    this.destroy('lmr.free');
  }

  /** @internal teardown: whatever is in flight has been discarded with its endpoint */
  destroy(by: string): void {
    spiCall({ operation: by }, () => this.region.destroy());
    this.closeContext?.();
    this.markFreed(by);
    this.pz.users--;
    this.ia.forget(this);
  }

  [Symbol.dispose](): void {
    if (!this.isFreed) this.free();
  }

  [inspect.custom](): string {
    return (
      `Lmr { id: ${this.id}, lengthBytes: ${this.lengthBytes}, ` +
      `address: 0x${this.address.toString(16)}, ` +
      `privileges: ${flagNames(MemPrivileges, this.privileges)}, inFlight: ${this.inFlight}` +
      `${this.isFreed ? ', freed' : ''} }`
    );
  }
}

const SUPPRESSED_HINT =
  'wait for their completions, or reset or free the endpoint; ' +
  'suppressed requests are known to have ended when a later one shows';
