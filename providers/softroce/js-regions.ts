/** Registered memory of a port that copies in JavaScript. */
import { checkRegion } from './port-options.js';

export class JsRegions {
  private readonly regions: (Uint8Array | undefined)[] = [];

  add(memory: ArrayBufferLike, byteOffset: number, byteLength: number): number {
    const region = checkRegion(memory, byteOffset, byteLength);
    const free = this.regions.indexOf(undefined);
    if (free < 0) return this.regions.push(region) - 1;
    this.regions[free] = region;
    return free;
  }

  remove(region: number): void {
    if (!this.regions[region]) throw new RangeError(`no region ${String(region)}`);
    this.regions[region] = undefined;
  }

  clear(): void {
    this.regions.length = 0;
  }

  /**
   * @returns undefined unless the range lies in a region. Memory that was transferred away has
   * become an empty region.
   */
  resolve(
    number: number,
    offsetLo: number,
    offsetHi: number,
    length: number,
  ): Uint8Array | undefined {
    const region = this.regions[number];
    const offset = offsetLo + offsetHi * 2 ** 32;
    if (!region || offset + length > region.length) return undefined;
    return region.subarray(offset, offset + length);
  }
}
