/** Placements of one receive burst: gathered in the port's array, handed over together. */
import { PLACE } from '../../../core/spi/index.js';
import type { PacketPort } from '../../../core/spi/index.js';

const TWO_32 = 4294967296;

export class PlacementQueue {
  private readonly words: Uint32Array;
  private readonly capacity: number;
  private count = 0;

  constructor(private readonly port: PacketPort) {
    this.words = port.placements;
    this.capacity = Math.floor(this.words.length / PLACE.WORDS);
  }

  /** @param source byte offset in the port's `rxArena`; @param offset in the region, in bytes */
  add(source: number, length: number, region: number, offset: number): void {
    if (this.count === this.capacity) this.flush();
    const at = this.count * PLACE.WORDS;
    this.words[at + PLACE.SOURCE] = source;
    this.words[at + PLACE.LENGTH] = length;
    this.words[at + PLACE.REGION] = region;
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
