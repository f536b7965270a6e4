/**
 * The memory of a device by its keys, and the one check that every access passes (IBTA 10.6). A key
 * is 32 random bits and serves as lkey and rkey; it is looked up again for every packet, so a
 * region that is gone is gone at once.
 */
import { assert } from '../../../core/spi/checks/index.js';
import {
  Access,
  type PacketPort,
  type Random,
  randomIova,
  SpiError,
} from '../../../core/spi/index.js';
import type { Domain } from './domain.js';
import { KeyTable } from './key-table.js';
import { offsetIn, WindowTable } from './memory-window.js';
import { Region } from './region.js';
import type { SoftQueuePair } from '../queue-pair/queue-pair.js';
import type { RcZeroCopyReads } from '../rc/zero-copy-reads.js';

const ALL_ACCESS =
  Access.LOCAL_WRITE |
  Access.REMOTE_WRITE |
  Access.REMOTE_READ |
  Access.REMOTE_ATOMIC |
  Access.MW_BIND |
  Access.ZERO_BASED;
const REMOTE_CHANGE = Access.REMOTE_WRITE | Access.REMOTE_ATOMIC;

/** Verdicts of `MemoryTable.check`. */
export const MEMORY_CHECK = { OK: 0, BAD_KEY: 1, WRONG_DOMAIN: 2, BOUNDS: 3, RIGHTS: 4 } as const;

export class MemoryTable {
  readonly windows: WindowTable;
  readonly zeroCopy = new ZeroCopyReaders();
  private readonly regions = new KeyTable<Region>();
  /** Regions by the port's number, until no packet to send refers to them. */
  private readonly byPort = new Map<number, Region>();
  /** The result of the last successful `check`. */
  region!: Region;
  offset = 0;

  /** @param release gives a region's port number back once no packet to send refers to it */
  constructor(
    private readonly port: PacketPort,
    private readonly random: Random,
    private readonly release: (portRegion: number) => void,
  ) {
    this.windows = new WindowTable(this, random);
  }

  get size(): number {
    return this.regions.size;
  }

  /**
   * @throws SpiError('EINVAL') for memory that is pooled, resizable, detached or empty, for rights
   * that contradict each other, and for a range that leaves the 64-bit address space; ('EBUSY') for
   * a key that is in use
   * @param key of a region that another process has with the same memory; default a fresh one
   */
  register(
    domain: Domain,
    memory: ArrayBufferView,
    access: number,
    iova: bigint,
    key = this.freshKey(),
  ): Region {
    checkMemory(memory);
    checkAccess(access);
    const base = (access & Access.ZERO_BASED) !== 0 ? 0n : iova;
    if (base < 0n || base + BigInt(memory.byteLength) > 1n << 64n) {
      throw new SpiError(
        'EINVAL',
        `iova ${iova} + ${memory.byteLength} leaves the 64-bit address space`,
      );
    }
    if (key === 0 || this.isKeyTaken(key)) {
      throw new SpiError('EBUSY', `key 0x${key.toString(16)} is in use`);
    }
    const number = this.port.addRegion(memory.buffer, memory.byteOffset, memory.byteLength);
    const region = new Region(this, domain, key, access, base, memory, number);
    this.regions.insert(region.key, region);
    this.byPort.set(number, region);
    domain.children += 1;
    return region;
  }

  /** The device closes: whatever is left goes. */
  destroyAll(): void {
    this.windows.destroyAll();
    for (const region of [...this.regions]) region.destroy();
  }

  remove(region: Region): void {
    this.zeroCopy.keep(region, region.key);
    this.zeroCopy.forget(region);
    this.regions.remove(region.key);
    assert(region.domain.children > 0, 'a region is deregistered once', region.key);
    region.domain.children -= 1;
    region.domain.mirror?.remove(region);
    this.release(region.port);
  }

  /**
   * Checks that `domain` may access `length` bytes at a 64-bit address under a key. After OK,
   * `region` and `offset` (in bytes from its start) tell where that is.
   * @param access every right needed; 0 for a local read
   */
  check(
    domain: Domain,
    key: number,
    addressLo: number,
    addressHi: number,
    length: number,
    access: number,
  ): number {
    const region = this.regions.find(key);
    if (region === undefined || !region.isThere) return MEMORY_CHECK.BAD_KEY;
    if (region.domain !== domain) return MEMORY_CHECK.WRONG_DOMAIN;
    const offset = offsetIn(region, addressLo, addressHi, length);
    return this.found(region, offset, region.access, access);
  }

  /**
   * The same for a peer of queue pair `qp`: `key` may be that of a window, which is open to the
   * queue pairs of its domain (type 1) or to one of them (type 2).
   */
  checkRemote(
    qp: SoftQueuePair,
    domain: Domain,
    key: number,
    addressLo: number,
    addressHi: number,
    length: number,
    access: number,
  ): number {
    const window = this.windows.find(key);
    if (window === undefined) {
      return this.check(domain, key, addressLo, addressHi, length, access);
    }
    const { region } = window;
    if (region === undefined || !region.isThere) return MEMORY_CHECK.BAD_KEY;
    if (window.domain !== domain) return MEMORY_CHECK.WRONG_DOMAIN;
    if (window.type === 2 && window.binder !== qp) return MEMORY_CHECK.WRONG_DOMAIN;
    const offset = offsetIn(window, addressLo, addressHi, length);
    return this.found(region, offset < 0 ? offset : window.offset + offset, window.access, access);
  }

  /** @param offset in the region, in bytes; negative when the access is out of bounds */
  private found(region: Region, offset: number, granted: number, access: number): number {
    if (offset < 0) return MEMORY_CHECK.BOUNDS;
    if ((granted & access) !== access) return MEMORY_CHECK.RIGHTS;
    this.region = region;
    this.offset = offset;
    return MEMORY_CHECK.OK;
  }

  onUnbound(region: Region, key: number): void {
    this.zeroCopy.keep(region, key);
  }

  findRegion(key: number): Region | undefined {
    return this.regions.find(key);
  }

  regionsOf(domain: Domain): Region[] {
    return [...this.regions].filter((region) => region.domain === domain);
  }

  regionHasPrefix(prefix: number): boolean {
    for (let key = 0; key < 256; key++) {
      if (this.regions.find(((prefix << 8) | key) >>> 0) !== undefined) return true;
    }
    return false;
  }

  /** True if the memory behind a region of the port exists; memory that is not ours always does. */
  isThere(portRegion: number): boolean {
    return this.byPort.get(portRegion)?.isThere ?? true;
  }

  /** The port's number is free again. */
  forget(portRegion: number): void {
    this.byPort.delete(portRegion);
  }

  randomIova(): bigint {
    return randomIova(this.random);
  }

  private freshKey(): number {
    for (;;) {
      const key = this.random.u32() >>> 0;
      if (key !== 0 && !this.isKeyTaken(key)) return key;
    }
  }

  private isKeyTaken(key: number): boolean {
    return this.regions.find(key) !== undefined || this.windows.has(key >>> 8);
  }
}

/**
 * The size of a slab of small Buffers: from Node 26 on slightly more than Buffer.poolSize. 0 where
 * there are no Buffers.
 */
const POOL_BYTES = 'Buffer' in globalThis ? Buffer.allocUnsafe(1).buffer.byteLength : 0;

function checkMemory(memory: ArrayBufferView): void {
  const buffer = memory.buffer as ArrayBufferLike & { resizable?: boolean; growable?: boolean };
  if (memory.byteLength === 0) {
    throw new SpiError('EINVAL', 'the memory is empty or its buffer is detached');
  }
  if (buffer.resizable === true || buffer.growable === true) {
    throw new SpiError('EINVAL', 'resizable memory cannot be registered: it may shrink');
  }
  const isSlab = buffer.byteLength === POOL_BYTES && memory.byteLength < buffer.byteLength;
  if (isSlab && Buffer.isBuffer(memory)) {
    throw new SpiError('EINVAL', "a slice of Node's Buffer pool cannot be registered: copy it");
  }
}

function checkAccess(access: number): void {
  if ((access & ~ALL_ACCESS) !== 0) {
    throw new SpiError('EINVAL', `access 0x${access.toString(16)} has unknown bits`);
  }
  if ((access & REMOTE_CHANGE) !== 0 && (access & Access.LOCAL_WRITE) === 0) {
    throw new SpiError('EINVAL', 'REMOTE_WRITE and REMOTE_ATOMIC need LOCAL_WRITE (IBTA 10.6.3.1)');
  }
}

/**
 * Connections that answered READs straight from a region's memory, without a copy. They are told
 * before that memory goes, since their peers may not have received the answers.
 */
export class ZeroCopyReaders {
  private readonly keepers = new Map<Region, Set<RcZeroCopyReads>>();

  add(region: Region, keeper: RcZeroCopyReads): void {
    const known = this.keepers.get(region);
    if (known) known.add(keeper);
    else this.keepers.set(region, new Set([keeper]));
  }

  remove(region: Region, keeper: RcZeroCopyReads): void {
    const known = this.keepers.get(region);
    if (known?.delete(keeper) === true && known.size === 0) this.keepers.delete(region);
  }

  keep(region: Region, key: number): void {
    for (const keeper of this.keepers.get(region) ?? []) keeper.keep(region, key);
  }

  forget(region: Region): void {
    const known = this.keepers.get(region);
    this.keepers.delete(region);
    for (const keeper of known ?? []) keeper.forget(region);
  }

  /** Regions that answers may be unread of. */
  get size(): number {
    return this.keepers.size;
  }
}
