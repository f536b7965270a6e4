/**
 * Registered memory of an iSER target on one adapter: the pool of the disk, and buffers to send.
 */
import type { Ia, Lmr, LmrSegment, Pz } from 'dapl';
import { BufferPool } from 'dapl/flow';
import { allOrNone } from '../all-or-none.js';

/** iSER header, basic header and the longest data segment of a control PDU. */
export const SEND_BYTES = 28 + 48 + 8192;
/**
 * Length up to which bytes are copied rather than awaited: the initiator's answer comes a round
 * trip sooner.
 */
export const COPIED_BYTES = 16_384;

export class RegisteredMemory {
  readonly pz: Pz;
  readonly sends: BufferPool;
  readonly copies: BufferPool;
  /** Regions as long as the device allows; only the last one is shorter. No chunk crosses two. */
  private readonly regions: readonly Lmr[];
  private readonly regionBytes: number;

  /**
   * @param memory for the disk's bytes while they are moved
   * @param chunkBytes of each transfer, at most
   * @throws DatError as `ia.createLmr`
   */
  constructor(
    ia: Ia,
    private readonly memory: Uint8Array,
    chunkBytes: number,
  ) {
    const most = ia.query().ia.maxLmrBlockSize;
    const regionBytes = Math.max(chunkBytes, most - (most % chunkBytes));
    this.regionBytes = regionBytes;
    const count = Math.ceil(memory.length / regionBytes);
    [this.pz, this.regions] = allOrNone((keep) => {
      const pz = keep(ia.createPz());
      const regionAt = (at: number): Lmr =>
        keep(ia.createLmr(memory.subarray(at, at + regionBytes), { pz }));
      return [pz, Array.from({ length: count }, (_, i) => regionAt(i * regionBytes))];
    });
    this.sends = new BufferPool({ pz: this.pz, bufferBytes: SEND_BYTES });
    this.copies = new BufferPool({ pz: this.pz, bufferBytes: COPIED_BYTES });
  }

  /** The segment of these bytes, if they are part of the registered memory. */
  find(bytes: Uint8Array): LmrSegment | undefined {
    const { memory, regionBytes } = this;
    const offset = bytes.byteOffset - memory.byteOffset;
    const isInside =
      bytes.buffer === memory.buffer && offset >= 0 && offset + bytes.length <= memory.length;
    if (!isInside) return undefined;
    const region = this.regions[Math.floor(offset / regionBytes)];
    return region?.segment(offset % regionBytes, bytes.length);
  }

  /** Frees everything; posted requests must have completed. */
  free(): void {
    for (const pool of [this.sends, this.copies]) pool.close();
    // An adapter that is closed has freed them.
    for (const each of [...this.regions, this.pz]) each[Symbol.dispose]();
  }
}
