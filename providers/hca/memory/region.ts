/** Memory regions (IBTA 10.6.3): memory of the consumer's, and the key that opens it. */
import { type MemoryRegion, SpiError } from '../../../core/spi/index.js';
import type { Domain } from './domain.js';
import type { MemoryTable } from './memory.js';

export class Region implements MemoryRegion {
  readonly lkey: number;
  readonly rkey: number;
  readonly lengthBytes: number;
  readonly addressLo: number;
  readonly addressHi: number;
  /** The memory itself, which the HCA accesses for atomics and datagram GRH areas. */
  readonly view: DataView;
  destroyed = false;
  boundWindows = 0;
  readonly bytes: Uint8Array;

  constructor(
    private readonly table: MemoryTable,
    readonly domain: Domain,
    readonly key: number,
    readonly access: number,
    readonly iova: bigint,
    memory: ArrayBufferView,
    /** The port's number for the memory. */
    readonly port: number,
  ) {
    this.lkey = key;
    this.rkey = key;
    this.lengthBytes = memory.byteLength;
    this.addressLo = Number(iova & 0xffffffffn);
    this.addressHi = Number(iova >> 32n);
    this.view = new DataView(memory.buffer, memory.byteOffset, memory.byteLength);
    this.bytes = new Uint8Array(memory.buffer, memory.byteOffset, memory.byteLength);
  }

  /** False once its owner has transferred the memory away: a detached view is empty. */
  get isThere(): boolean {
    return this.bytes.length === this.lengthBytes;
  }

  /** @param offset in bytes, from which on `target` is filled */
  copyTo(target: Uint8Array, offset: number): void {
    target.set(this.bytes.subarray(offset, offset + target.length));
  }

  destroy(): void {
    if (this.destroyed) return;
    if (this.boundWindows > 0) {
      throw new SpiError('EBUSY', `${this.boundWindows} windows are bound to the memory region`);
    }
    this.destroyed = true;
    this.table.remove(this);
  }
}

/**
 * Moves payload of few bytes at once, in JavaScript: that takes less time than the port needs to
 * look up its place.
 */
export const FEW_BYTES = 16;

/** Registered memory, as bytes are moved from and to it; that it is there has been checked. */
export interface RegionBytes {
  /** The port's number of it. */
  readonly port: number;
  readonly bytes: Uint8Array;
  readonly view: DataView;
}
