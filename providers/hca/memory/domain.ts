/** Protection domains (IBTA 10.2.3): what may be used together. */
import { type MemoryRegion, type ProtectionDomain, SpiError } from '../../../core/spi/index.js';

/** The device's memory, as its domains see it. */
export interface DomainMemory {
  register(domain: Domain, memory: ArrayBufferView, access: number, iova: bigint): MemoryRegion;
  randomIova(): bigint;
}

export class Domain implements ProtectionDomain {
  /** Regions, windows, queue pairs, shared receive queues and address handles that belong here. */
  children = 0;
  destroyed = false;

  constructor(
    private readonly memory: DomainMemory,
    private readonly onDestroy: () => void,
  ) {}

  belongsTo(memory: DomainMemory): boolean {
    return this.memory === memory;
  }

  registerMemory(memory: ArrayBufferView, access: number, iova?: bigint): MemoryRegion {
    if (this.destroyed) throw new SpiError('EINVAL', 'the protection domain is destroyed');
    return this.memory.register(this, memory, access, iova ?? this.memory.randomIova());
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
