/** Protection domains and regions of a stranger's device. */
import { Access, type MemoryRegion, type ProtectionDomain, SpiError } from 'dapl/spi';
import type { Mutant } from './mutants.js';

export class StrangerMemory {
  private readonly regions = new Map<number, Region>();
  private nextKey = 0x100;
  private nextIova = 0x10_0000_0000n;

  constructor(private readonly mutant: Mutant | undefined) {}

  register(domain: Domain, memory: ArrayBufferView, access: number, iova?: bigint): Region {
    checkMemory(memory);
    const bytes = new Uint8Array(memory.buffer, memory.byteOffset, memory.byteLength);
    this.nextKey += 0x101;
    const chosen = (access & Access.ZERO_BASED) !== 0 ? 0n : (iova ?? this.nextIova);
    this.nextIova += BigInt(Math.ceil((bytes.length + 1) / 4096) * 4096);
    const region = new Region(this.nextKey, bytes, access, chosen, domain, () => {
      this.regions.delete(region.lkey);
    });
    this.regions.set(region.lkey, region);
    return region;
  }

  /** The bytes at an address, if the key opens them. */
  find(
    domain: Domain,
    key: number,
    address: bigint,
    length: number,
    access: number,
  ): Uint8Array | undefined {
    const region = this.regions.get(key);
    if (region?.domain !== domain || (region.access & access) !== access) return undefined;
    const offset = Number(address - region.iova);
    const unchecked = this.mutant === 'checks the key of a region, not its end';
    if (offset < 0 || (offset + length > region.lengthBytes && !unchecked)) return undefined;
    return region.bytes.subarray(offset, offset + length);
  }
}

function checkMemory(memory: ArrayBufferView): void {
  const buffer = memory.buffer as ArrayBufferLike & { resizable?: boolean; growable?: boolean };
  const isPooled = Buffer.isBuffer(memory) && buffer === Buffer.allocUnsafe(1).buffer;
  if (buffer.resizable !== true && buffer.growable !== true && memory.byteLength > 0 && !isPooled)
    return;
  throw new SpiError('EINVAL', 'memory that is resizable, pooled or not there');
}

export class Region implements MemoryRegion {
  readonly rkey: number;
  readonly lengthBytes: number;

  constructor(
    readonly lkey: number,
    readonly bytes: Uint8Array,
    readonly access: number,
    readonly iova: bigint,
    readonly domain: Domain,
    private readonly onDestroyed: () => void,
  ) {
    this.rkey = lkey;
    this.lengthBytes = bytes.length;
    domain.children += 1;
  }

  destroy(): void {
    this.domain.children -= 1;
    this.onDestroyed();
  }
}

export class Domain implements ProtectionDomain {
  /** Regions, and queue pairs. */
  children = 0;

  constructor(private readonly memory: StrangerMemory) {}

  registerMemory(memory: ArrayBufferView, access: number, iova?: bigint): Region {
    return this.memory.register(this, memory, access, iova);
  }

  destroy(): void {
    if (this.children > 0) throw new SpiError('EBUSY', `${this.children} objects belong to it`);
  }
}
