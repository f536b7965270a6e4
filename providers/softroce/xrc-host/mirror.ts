/**
 * Regions of a protection domain that a host process has, too: under the same keys, in the same
 * memory. Only memory that processes share by a name can be there.
 */
import { type MemoryRegion, SpiError } from '../../../core/spi/index.js';
import type { Domain, RegionMirror } from '../../hca/memory/domain.js';
import type { Region } from '../../hca/memory/region.js';
import type { HostLink } from './host-link.js';
import { askIfThere } from './hosted-target.js';

/** Names of the memory that this process has from `Device.shareMemory`. */
export class SharedNames {
  private readonly names = new WeakMap<ArrayBufferLike, string>();

  set(memory: ArrayBuffer, name: string): void {
    this.names.set(memory, name);
  }

  of(memory: ArrayBufferLike): string | undefined {
    return this.names.get(memory);
  }
}

export class Mirror implements RegionMirror {
  private readonly keys = new Set<number>();

  constructor(
    private readonly domain: Domain,
    /** Its number at the host. */
    readonly zone: number,
    private readonly link: Pick<HostLink, 'ask'>,
    private readonly names: SharedNames,
    private readonly descriptorOf: (name: string) => number,
  ) {}

  /** @throws SpiError('EOPNOTSUPP') one of them cannot be shared: then none is */
  begin(regions: readonly Region[]): void {
    for (const { bytes } of regions) this.admit(bytes);
    this.domain.mirror = this;
    try {
      for (const region of regions) {
        if (this.add(region)) continue;
        throw new SpiError('EBUSY', `key 0x${region.key.toString(16)} is in use at the host`);
      }
    } catch (error) {
      this.end();
      throw error;
    }
  }

  admit(memory: ArrayBufferView): void {
    if (this.names.of(memory.buffer) !== undefined) return;
    throw new SpiError(
      'EOPNOTSUPP',
      `${memory.byteLength} bytes of ordinary memory: the zone has a receive queue in an XRC ` +
        'domain that processes share, whose host cannot reach them',
      { hint: "allocate them as shared memory: ia.allocate(bytes, { pz, shared: 'name' })" },
    );
  }

  add(region: MemoryRegion): boolean {
    const { zone } = this;
    const { bytes, key, access, iova, lengthBytes } = region as Region;
    const { buffer, byteOffset } = bytes;
    try {
      const memoryBytes = buffer.byteLength;
      this.link.ask(
        { op: 'addRegion', zone, key, access, iova, memoryBytes, offset: byteOffset, lengthBytes },
        [this.descriptorOf(this.names.of(buffer) ?? '')],
      );
    } catch (error) {
      if (error instanceof SpiError && error.code === 'EBUSY') return false;
      throw error;
    }
    this.keys.add(key);
    return true;
  }

  remove(region: MemoryRegion): void {
    const { key } = region as Region;
    if (this.keys.delete(key)) askIfThere(this.link, { op: 'removeRegion', key });
  }

  /** The link is being closed, by which the host forgets all that is here. */
  detach(): void {
    if (this.domain.mirror === this) this.domain.mirror = undefined;
    this.keys.clear();
  }

  private end(): void {
    for (const key of this.keys) askIfThere(this.link, { op: 'removeRegion', key });
    this.detach();
  }
}
