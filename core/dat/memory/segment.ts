/**
 * Segments: the memory that posted requests read and write. They are created once and reused: a
 * post copies the numbers, so moving a segment afterwards does not affect requests in flight.
 */
import { argumentSubtype } from '../../errors/call-arguments.js';
import { DatError } from '../../errors/index.js';
import { checkInteger, checkParameter, checkU64 } from '../../errors/guards.js';
import { hex, isInteger, isU64, showAs } from '../../spi/checks/index.js';
import type { Lmr } from './lmr.js';

const U32 = 2 ** 32;

/** DAT_LMR_TRIPLET: a part of a local region. Made by `lmr.segment()`. */
export class LmrSegment {
  static {
    showAs(this, 'LmrSegment', ({ lmr, offsetBytes, lengthBytes }) => {
      return { lmr, offsetBytes, lengthBytes };
    });
  }

  addressLo = 0;
  addressHi = 0;
  lengthBytes = 0;

  /** @internal use `lmr.segment()` */
  constructor(
    readonly lmr: Lmr,
    offsetBytes: number,
    lengthBytes: number,
  ) {
    this.set(offsetBytes, lengthBytes);
  }

  /**
   * Moves the segment within its region.
   * @param offsetBytes from the start of the region
   * @param lengthBytes 0 up to what is left of the region, at most 2^32 - 1
   * @throws DatError DAT_INVALID_PARAMETER outside of the region
   */
  set(offsetBytes: number, lengthBytes: number): this {
    const { lmr } = this;
    checkInteger('lmr.segment', 'offsetBytes', offsetBytes, 0, lmr.lengthBytes);
    const most = Math.min(lmr.lengthBytes - offsetBytes, U32 - 1);
    checkInteger('lmr.segment', 'lengthBytes', lengthBytes, 0, most);
    const lo = lmr.addressLo + offsetBytes;
    this.addressLo = lo >>> 0;
    this.addressHi = lmr.addressHi + Math.floor(lo / U32);
    this.lengthBytes = lengthBytes;
    return this;
  }

  /** Its start within its region. */
  get offsetBytes(): number {
    const lo = this.addressLo - this.lmr.addressLo;
    return (this.addressHi - this.lmr.addressHi) * U32 + lo;
  }

  /** The bytes that the segment covers: a view of the region's memory. */
  get bytes(): Uint8Array {
    const offset = this.offsetBytes;
    return this.lmr.bytes.subarray(offset, offset + this.lengthBytes);
  }
}

/** Memory that a post reads or writes: one part of a region, or several in order. */
export type Segments = LmrSegment | readonly LmrSegment[];

/** `Array.isArray` does not narrow readonly arrays. */
export function isList(segments: Segments): segments is readonly LmrSegment[] {
  return Array.isArray(segments);
}

/** True if the memory was transferred away after it was registered. */
export function hasLostMemory({ lmr }: LmrSegment): boolean {
  return lmr.bytes.length !== lmr.lengthBytes;
}

/** The error of a call on such a segment. */
export function lostMemory(operation: string, segment: LmrSegment): DatError {
  return new DatError('DAT_INVALID_STATE', {
    subtype: 'DAT_INVALID_STATE_LMR_FREE',
    operation,
    message: `memory region ${segment.lmr.id} has lost its memory: its ArrayBuffer was transferred`,
    hint: 'register the memory where it is now: ia.createLmr()',
    value: segment,
  });
}

/** DAT_RMR_TRIPLET as an application writes it: an address in the peer's memory. */
export interface RemoteAddress {
  /** Virtual address as the peer told it, u64. */
  readonly address: bigint;
  /** The peer's `rmrContext` (rkey), u32. */
  readonly rmrContext: number;
}

/**
 * A remote address parsed once, without bigint on the hot path. `seek` moves it relative to its
 * base; a post copies its numbers.
 */
export class RemoteSegment {
  static {
    showAs(this, 'RemoteSegment', ({ address, rmrContext }) => {
      return { address: hex(address), rmrContext: hex(rmrContext) };
    });
  }

  addressLo: number;
  addressHi: number;
  readonly rmrContext: number;
  private readonly baseLo: number;
  private readonly baseHi: number;

  /** @throws DatError DAT_INVALID_PARAMETER for what are not a u64 and a u32 */
  constructor(remote: RemoteAddress) {
    checkRemote('RemoteSegment', remote);
    this.baseLo = this.addressLo = Number(remote.address & 0xffffffffn);
    this.baseHi = this.addressHi = Number(remote.address >> 32n);
    this.rmrContext = remote.rmrContext;
  }

  /**
   * @param offsetBytes from the base, 0 to 2^53 - 1
   * @throws DatError DAT_INVALID_PARAMETER when the address would pass 2^64
   */
  seek(offsetBytes: number): this {
    checkInteger('remote.seek', 'offsetBytes', offsetBytes, 0, Number.MAX_SAFE_INTEGER);
    const lo = this.baseLo + (offsetBytes % U32);
    const hi = this.baseHi + Math.floor(offsetBytes / U32) + (lo >= U32 ? 1 : 0);
    if (hi >= U32) {
      throw new DatError('DAT_INVALID_PARAMETER', {
        subtype: argumentSubtype('remote.seek', 'offsetBytes'),
        operation: 'remote.seek',
        message: `address ${this.address} plus ${offsetBytes} passes 2^64`,
        value: offsetBytes,
      });
    }
    this.addressLo = lo >>> 0;
    this.addressHi = hi;
    return this;
  }

  /** The current address. */
  get address(): bigint {
    return (BigInt(this.addressHi) << 32n) | BigInt(this.addressLo);
  }
}

/**
 * Checks an address and a context.
 * @param name of the argument
 * @throws DatError DAT_INVALID_PARAMETER
 */
export function checkRemote(
  operation: string,
  value: unknown,
  name = 'remote',
  expected = 'a RemoteSegment, or { address, rmrContext }',
): asserts value is RemoteAddress {
  const isObject = typeof value === 'object' && value !== null;
  checkParameter(operation, name, value, isObject, expected);
  const { address, rmrContext } = value as Partial<RemoteAddress>;
  // Builds names only for errors: this is on the hot path.
  if (!isU64(address)) checkU64(operation, `${name}.address`, address);
  if (isInteger(rmrContext, 0, U32 - 1)) return;
  checkInteger(operation, `${name}.rmrContext`, rmrContext, 0, U32 - 1);
}
