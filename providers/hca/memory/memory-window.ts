/**
 * Memory windows (IBTA 10.6.6, 10.6.7): remote keys of their own for parts of regions, given and
 * taken back by work requests. The upper 24 bits of a window's key are its number and random; the
 * lower 8 are the consumer's and change with each bind, so that an old key is dead.
 */
import { Access, type MemoryWindow, type Random, SQE } from '../../../core/spi/index.js';
import { KeyTable } from './key-table.js';
import type { Domain } from './domain.js';
import type { Region } from './region.js';
import type { MemoryTable } from './memory.js';
import type { SoftQueuePair } from '../queue-pair/queue-pair.js';

const TWO_32 = 4294967296;
const KEY_BITS = 8;
const KEY_MASK = 0xff;
const WINDOW_ACCESS =
  Access.REMOTE_READ | Access.REMOTE_WRITE | Access.REMOTE_ATOMIC | Access.ZERO_BASED;
const REMOTE_CHANGE = Access.REMOTE_WRITE | Access.REMOTE_ATOMIC;

export class Window implements MemoryWindow {
  /** Upper 24 bits of its key; never 0. */
  readonly handle: number;
  rkey: number;
  /** The region it is bound to; undefined: it grants nothing. */
  region: Region | undefined;
  /** Its start in its region, in bytes. */
  offset = 0;
  lengthBytes = 0;
  access = 0;
  /** Remote address of its first byte. */
  addressLo = 0;
  addressHi = 0;
  /** Type 2: the only queue pair that it is open to. */
  binder: SoftQueuePair | undefined;
  destroyed = false;

  constructor(
    private readonly table: WindowTable,
    readonly domain: Domain,
    readonly type: 1 | 2,
    prefix: number,
    key: number,
  ) {
    this.handle = prefix;
    this.rkey = ((prefix << KEY_BITS) | key) >>> 0;
  }

  /** Grants nothing any more; bound again, it has another key. */
  unbind(): void {
    if (this.region) {
      this.table.onUnbound(this.region, this.rkey);
      this.region.boundWindows -= 1;
    }
    this.region = undefined;
    this.binder?.windows.delete(this);
    this.binder = undefined;
  }

  destroy(): void {
    if (this.destroyed) return;
    this.destroyed = true;
    this.unbind();
    this.table.remove(this);
  }
}

export class WindowTable {
  private readonly windows = new KeyTable<Window>();

  constructor(
    private readonly host: MemoryTable,
    private readonly random: Random,
  ) {}

  get size(): number {
    return this.windows.size;
  }

  create(domain: Domain, type: 1 | 2): Window {
    const window = new Window(this, domain, type, this.freshPrefix(), this.random.u32() & KEY_MASK);
    this.windows.insert(window.handle, window);
    domain.children += 1;
    return window;
  }

  /** The window whose present key it is, bound or not. */
  find(rkey: number): Window | undefined {
    const window = this.windows.find(rkey >>> KEY_BITS);
    return window?.rkey === rkey ? window : undefined;
  }

  has(handle: number): boolean {
    return this.windows.find(handle) !== undefined;
  }

  onUnbound(region: Region, key: number): void {
    this.host.onUnbound(region, key);
  }

  remove(window: Window): void {
    this.windows.remove(window.handle);
    window.domain.children -= 1;
  }

  /** The device closes: whatever is left goes. */
  destroyAll(): void {
    for (const window of [...this.windows]) window.destroy();
  }

  // --- work requests ----------------------------------------------------------------------------

  /**
   * BIND_MW (IBTA 10.6.7.2): `words` from `at` on hold the send entry. False when it is refused,
   * and nothing has changed then.
   */
  bind(binder: SoftQueuePair, words: Uint32Array, at: number): boolean {
    const window = this.windows.find(words[at + SQE.BIND_WINDOW]!);
    const rkey = words[at + SQE.BIND_RKEY]!;
    if (window === undefined || window.domain !== binder.domain) return false;
    if (rkey >>> KEY_BITS !== window.handle || !mayBind(window, rkey)) return false;
    const length = words[at + SQE.BIND_LENGTH_LO]! + words[at + SQE.BIND_LENGTH_HI]! * TWO_32;
    if (length > 0) return this.bindTo(window, binder, words, at, length, rkey);
    if (window.type === 2) return false;
    window.unbind();
    window.rkey = rkey;
    return true;
  }

  private bindTo(
    window: Window,
    binder: SoftQueuePair,
    words: Uint32Array,
    at: number,
    length: number,
    rkey: number,
  ): boolean {
    const region = this.host.findRegion(words[at + SQE.BIND_REGION_LKEY]!);
    const access = words[at + SQE.BIND_ACCESS]!;
    if (region === undefined || region.domain !== window.domain) return false;
    if (!mayGrant(window, region, access)) return false;
    const lo = words[at + SQE.REMOTE_ADDRESS_LO]!;
    const hi = words[at + SQE.REMOTE_ADDRESS_HI]!;
    const offset = offsetIn(region, lo, hi, length);
    if (offset < 0) return false;
    window.unbind();
    const zeroBased = (access & Access.ZERO_BASED) !== 0;
    window.rkey = rkey;
    window.region = region;
    window.offset = offset;
    window.lengthBytes = length;
    window.access = access;
    window.addressLo = zeroBased ? 0 : lo;
    window.addressHi = zeroBased ? 0 : hi;
    region.boundWindows += 1;
    if (window.type === 2) {
      window.binder = binder;
      binder.windows.add(window);
    }
    return true;
  }

  /**
   * LOCAL_INV, and the end of SEND_WITH_INV at its receiver (IBTA 10.6.7.2.5): only a type 2 window
   * that is bound, and through that queue pair. False when it is refused.
   */
  invalidate(binder: SoftQueuePair, rkey: number): boolean {
    const window = this.find(rkey);
    if (window === undefined || window.binder !== binder) return false;
    window.unbind();
    return true;
  }

  private freshPrefix(): number {
    for (;;) {
      const prefix = this.random.u32() >>> KEY_BITS;
      if (prefix !== 0 && !this.has(prefix) && !this.host.regionHasPrefix(prefix)) {
        return prefix;
      }
    }
  }
}

/** Type 2 has to be invalidated first; a new bind of type 1 has to make the old key void. */
function mayBind(window: Window, rkey: number): boolean {
  return window.type === 2 ? window.region === undefined : rkey !== window.rkey;
}

/**
 * True if the access may be granted (IBTA 10.6.7.2.1): the region must allow binding, and local
 * writes if the window allows remote changes.
 */
function mayGrant(window: Window, region: Region, access: number): boolean {
  if ((region.access & Access.MW_BIND) === 0 || (access & ~WINDOW_ACCESS) !== 0) return false;
  if ((access & REMOTE_CHANGE) !== 0 && (region.access & Access.LOCAL_WRITE) === 0) return false;
  return window.type === 2 || (access & Access.ZERO_BASED) === 0;
}

/** Addresses that a key opens: those of a region or window. */
interface AddressRange {
  readonly addressLo: number;
  readonly addressHi: number;
  readonly lengthBytes: number;
}

/** The start of an access within a range, in bytes; -1 if it does not lie within it. */
export function offsetIn(range: AddressRange, lo: number, hi: number, length: number): number {
  // Exact below 2^53; beyond that, rounding keeps it far above every length, or below zero.
  const offset = (hi - range.addressHi) * TWO_32 + (lo - range.addressLo);
  return offset < 0 || offset + length > range.lengthBytes ? -1 : offset;
}
