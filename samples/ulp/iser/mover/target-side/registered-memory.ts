/** Memory of one adapter that an iSER target moves data with: the pool of the disk, and sends. */
import type { Ia, Lmr, LmrSegment, Pz } from 'dapl';
import { BufferPool } from 'dapl/flow';

/** iSER header, basic header and the longest data segment of a control PDU. */
export const SEND_BYTES = 28 + 48 + 8192;
/** Bytes that are copied, not waited for: the initiator's answer comes a round trip sooner. */
export const COPIED_BYTES = 16_384;

export class RegisteredMemory {
  readonly pz: Pz;
  readonly sends: BufferPool;
  readonly copies: BufferPool;
  private readonly region: Lmr;

  /** @param memory what the disk's bytes are in while they are moved */
  constructor(
    ia: Ia,
    private readonly memory: Uint8Array,
  ) {
    this.pz = ia.createPz();
    this.region = ia.createLmr(memory, { pz: this.pz });
    this.sends = new BufferPool({ pz: this.pz, bufferBytes: SEND_BYTES });
    this.copies = new BufferPool({ pz: this.pz, bufferBytes: COPIED_BYTES });
  }

  /** The segment of these bytes, if they are a part of the registered memory. */
  find(bytes: Uint8Array): LmrSegment | undefined {
    const { memory, region } = this;
    const offset = bytes.byteOffset - memory.byteOffset;
    const isInside =
      bytes.buffer === memory.buffer && offset >= 0 && offset + bytes.length <= memory.length;
    return isInside ? region.segment(offset, bytes.length) : undefined;
  }

  /** Gives all of it back; what was posted must have completed. */
  free(): void {
    for (const pool of [this.sends, this.copies]) pool.close();
    // An adapter that is closed has freed them.
    for (const each of [this.region, this.pz]) each[Symbol.dispose]();
  }
}
