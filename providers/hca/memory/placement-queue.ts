/** Placements of one receive burst: gathered in the port's array, handed over together. */
import { type PacketPort, PLACE } from '../../../core/spi/index.js';
import { FEW_BYTES, type RegionBytes } from './region.js';

const TWO_32 = 4294967296;

export class PlacementQueue {
  private readonly words: Uint32Array;
  private readonly arena: Uint8Array;
  private readonly capacity: number;
  private count = 0;

  constructor(private readonly port: PacketPort) {
    this.words = port.placements;
    this.arena = port.rxArena;
    this.capacity = Math.floor(this.words.length / PLACE.WORDS);
  }

  /** @param source as PLACE.SOURCE; @param offset in the region, in bytes */
  add(source: number, length: number, region: RegionBytes, offset: number): void {
    // Nothing overtakes what waits: it may be for the same place.
    if (length <= FEW_BYTES && this.count === 0 && source < this.arena.length) {
      const { bytes } = region;
      for (let i = 0; i < length; i++) bytes[offset + i] = this.arena[source + i]!;
      return;
    }
    if (this.count === this.capacity) this.flush();
    const at = this.count * PLACE.WORDS;
    this.words[at + PLACE.SOURCE] = source;
    this.words[at + PLACE.LENGTH] = length;
    this.words[at + PLACE.REGION] = region.port;
    this.words[at + PLACE.OFFSET_LO] = offset >>> 0;
    this.words[at + PLACE.OFFSET_HI] = offset < TWO_32 ? 0 : offset / TWO_32;
    this.count += 1;
  }

  /** Bytes are in memory afterwards: call before anything reads them or tells of them. */
  flush(): void {
    if (this.count === 0) return;
    const count = this.count;
    this.count = 0;
    this.port.place(count);
  }
}
