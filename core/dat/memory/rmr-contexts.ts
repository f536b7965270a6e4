/**
 * The memory that the remote contexts of an adapter open, by number: a whole region, or the part
 * that a window is bound to. A read to an RMR finds its sink here.
 */
import { checkInteger, invalid } from '../../errors/guards.js';
import type { Lmr } from './lmr.js';
import { checkRemote, LmrSegment } from './segment.js';

/** DAT_RMR_TRIPLET of our own: a part of a remote context's memory. */
export interface RmrTriplet {
  /** Virtual address as a peer would name it, u64. */
  readonly address: bigint;
  /** Context of a region or of a bound RMR of this adapter, u32. */
  readonly rmrContext: number;
  /** 0 to 2^32 - 1. */
  readonly lengthBytes: number;
}

interface Opening {
  /** Its start within the region. */
  readonly offsetBytes: number;
  readonly lengthBytes: number;
  readonly addressLo: number;
  readonly addressHi: number;
  /** Moved to the part that a post names; the post copies its numbers. */
  readonly segment: LmrSegment;
}

const U32 = 2 ** 32;
const TRIPLET = '{ address, rmrContext, lengthBytes }';

export class RmrContexts {
  private readonly openings = new Map<number, Opening>();
  private readonly wide = new BigUint64Array(1);
  private readonly words = new Uint32Array(this.wide.buffer);

  /**
   * Opens a part of a region under a context.
   * @returns a function that closes it, but not a later opening of the same number
   */
  open(context: number, lmr: Lmr, offsetBytes: number, lengthBytes: number): () => void {
    const lo = lmr.addressLo + offsetBytes;
    const opening: Opening = {
      offsetBytes,
      lengthBytes,
      addressLo: lo >>> 0,
      addressHi: lmr.addressHi + Math.floor(lo / U32),
      segment: new LmrSegment(lmr, 0, 0),
    };
    this.openings.set(context, opening);
    return () => {
      if (this.openings.get(context) === opening) this.openings.delete(context);
    };
  }

  /**
   * The memory of a triplet. Valid until the next call; allocates nothing.
   * @throws DatError DAT_INVALID_PARAMETER
   */
  resolve(operation: string, sink: unknown): LmrSegment {
    checkRemote(operation, sink, 'sink', TRIPLET);
    const { address, rmrContext, lengthBytes } = sink as RmrTriplet;
    const opening = this.openings.get(rmrContext);
    if (opening === undefined) {
      const expected = 'the rmrContext of a region or of a bound RMR of this adapter';
      throw invalid(operation, 'sink.rmrContext', rmrContext, expected);
    }
    this.wide[0] = address;
    const lo = (this.words[0] ?? 0) - opening.addressLo;
    const offset = ((this.words[1] ?? 0) - opening.addressHi) * U32 + lo;
    if (offset < 0 || offset > opening.lengthBytes) {
      const expected = `inside of what context ${rmrContext} opens`;
      throw invalid(operation, 'sink.address', address, expected);
    }
    const most = Math.min(opening.lengthBytes - offset, U32 - 1);
    checkInteger(operation, 'sink.lengthBytes', lengthBytes, 0, most);
    return opening.segment.set(opening.offsetBytes + offset, lengthBytes);
  }
}
