/** Protection domains (IBTA 10.2.3): groups of objects that may be used together. */
import { type MemoryRegion, type ProtectionDomain, SpiError } from '../../../core/spi/index.js';
import type { MemoryTable } from './memory.js';

/** Another process that places data in the memory of a domain: an XRC host. */
export interface RegionMirror {
  /** @throws SpiError('EOPNOTSUPP') the memory cannot be shared with that process */
  admit(memory: ArrayBufferView): void;
  /** @returns false where the key is taken there: another one is tried */
  add(region: MemoryRegion): boolean;
  /** Removes a region; it may never have been added. */
  remove(region: MemoryRegion): void;
}

export class Domain implements ProtectionDomain {
  /** Regions, windows, queue pairs, shared receive queues and address handles that belong here. */
  children = 0;
  destroyed = false;
  mirror: RegionMirror | undefined = undefined;

  constructor(
    private readonly memory: MemoryTable,
    private readonly onDestroy: () => void,
  ) {}

  belongsTo(memory: MemoryTable): boolean {
    return this.memory === memory;
  }

  registerMemory(memory: ArrayBufferView, access: number, iova?: bigint): MemoryRegion {
    if (this.destroyed) throw new SpiError('EINVAL', 'the protection domain is destroyed');
    const { mirror } = this;
    mirror?.admit(memory);
    for (;;) {
      const address = iova ?? this.memory.randomIova();
      const region = this.memory.register(this, memory, access, address);
      if (mirror === undefined || mirrored(mirror, region)) return region;
    }
  }

  destroy(): void {
    if (this.destroyed) return;
    if (this.children > 0) {
      throw new SpiError('EBUSY', `${this.children} objects belong to the protection domain`);
    }
    this.destroyed = true;
    this.onDestroy();
  }
}

/** @returns false where the key is taken in the other process: the region has been ended */
function mirrored(mirror: RegionMirror, region: MemoryRegion): boolean {
  let added = false;
  try {
    added = mirror.add(region);
    return added;
  } finally {
    if (!added) region.destroy();
  }
}
