/** Memory that a port may read and write, by number; every access is checked against its bounds. */
import { SpiError } from '../../core/spi/index.js';

export class RegionTable {
  private readonly regions: (Uint8Array | undefined)[] = [];

  /** @throws SpiError('EINVAL') for memory that may move, is detached or too short */
  add(memory: ArrayBufferLike, byteOffset: number, byteLength: number): number {
    const state = memory as { resizable?: boolean; growable?: boolean; detached?: boolean };
    if (state.resizable === true || state.growable === true) {
      throw new SpiError('EINVAL', 'resizable memory cannot be reached: it may shrink');
    }
    if (state.detached === true) throw new SpiError('EINVAL', 'the memory is detached');
    if (byteOffset + byteLength > memory.byteLength) {
      const end = byteOffset + byteLength;
      throw new SpiError('EINVAL', `range ends at ${end} of ${memory.byteLength} bytes`);
    }
    const free = this.regions.indexOf(undefined);
    const at = free < 0 ? this.regions.length : free;
    this.regions[at] = new Uint8Array(memory, byteOffset, byteLength);
    return at;
  }

  /** @throws RangeError when there is no such region */
  remove(region: number): void {
    if (!this.regions[region]) throw new RangeError(`no region ${region}`);
    this.regions[region] = undefined;
  }

  /**
   * The region, when a range lies wholly in it.
   * @throws RangeError otherwise
   */
  resolve(region: number, offset: number, length: number): Uint8Array {
    const memory = this.regions[region];
    if (!memory) throw new RangeError(`no region ${region}`);
    if (offset + length > memory.length) {
      throw new RangeError(`range ${offset} + ${length} in a region of ${memory.length} bytes`);
    }
    return memory;
  }

  clear(): void {
    this.regions.length = 0;
  }

  /** Regions in use. */
  get size(): number {
    return this.regions.reduce((sum, region) => sum + (region ? 1 : 0), 0);
  }
}
