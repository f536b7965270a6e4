/**
 * Address handles of QP1, one a destination. A handle in use by a send stays; idle ones are kept
 * for the next send to the same place, up to a bound, and the one unused for longest goes first.
 */
import { assert } from '../../core/spi/checks/index.js';
import type { AddressHandle, Device, Gid, ProtectionDomain } from '../../core/spi/index.js';
import type { PortAddress } from './port.js';

interface CachedAddress extends PortAddress {
  readonly key: string;
  readonly object: AddressHandle;
  users: number;
}

export class AddressHandles {
  // A Map iterates in order of insertion; each use inserts anew: the first idle one is the oldest.
  private readonly byKey = new Map<string, CachedAddress>();

  constructor(
    private readonly device: Device,
    private readonly pd: ProtectionDomain,
    private readonly maxIdle: number,
  ) {}

  get size(): number {
    return this.byKey.size;
  }

  /** @throws SpiError when the device cannot reach the GID */
  acquire(gid: Gid, localGidIndex: number): CachedAddress {
    const key = `${localGidIndex}:${gid.join('.')}`;
    let cached = this.byKey.get(key);
    if (cached) {
      this.byKey.delete(key);
    } else {
      const to = { gid: gid.slice(), localGidIndex };
      const object = this.device.createAddressHandle(this.pd, to);
      cached = { ...to, key, object, handle: object.handle, users: 0 };
    }
    cached.users++;
    this.byKey.set(key, cached);
    return cached;
  }

  release(cached: CachedAddress): void {
    assert(cached.users > 0, 'an address handle is released once', cached.key);
    cached.users--;
    if (this.byKey.size > this.maxIdle) this.evict();
  }

  /** Destroys all of them, in use or not. */
  close(): void {
    for (const { object } of this.byKey.values()) object.destroy();
    this.byKey.clear();
  }

  private evict(): void {
    for (const cached of this.byKey.values()) {
      if (this.byKey.size <= this.maxIdle) return;
      if (cached.users > 0) continue;
      this.byKey.delete(cached.key);
      cached.object.destroy();
    }
  }
}
