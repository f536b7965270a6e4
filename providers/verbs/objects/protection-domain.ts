/** Protection domains and their objects: regions, windows, address handles. */
import {
  Access,
  type AddressHandle,
  type AddressVector,
  type MemoryRegion,
  type MemoryWindow,
  type ProtectionDomain,
  SpiError,
} from '../../../core/spi/index.js';
import { pathWordsOf } from './attribute-words.js';
import type { OpenDevice } from './open-device.js';
import { made } from '../system/errno.js';
import { pin, pinnable, unpin } from './pinnable.js';
import { VerbsObject } from './verbs-object.js';

const REMOTE_CHANGE = Access.REMOTE_WRITE | Access.REMOTE_ATOMIC;
const ALL_ACCESS = Object.values(Access).reduce((all, bit) => all | bit, 0);

export class VerbsProtectionDomain extends VerbsObject implements ProtectionDomain {
  constructor(device: OpenDevice) {
    super(device, 'protection domain');
    this.created(made('ibv_alloc_pd', device.addon.allocPd(device.number)));
  }

  registerMemory(memory: ArrayBufferView, access: number, iova?: bigint): MemoryRegion {
    this.checkUsable(this.device);
    return new VerbsMemoryRegion(this, memory, access, iova);
  }

  protected release(number: number): [string, number] {
    return ['ibv_dealloc_pd', this.device.addon.deallocPd(number)];
  }
}

/** Pinned, and kept from being collected or transferred, until it is deregistered. */
class VerbsMemoryRegion extends VerbsObject implements MemoryRegion {
  readonly lkey: number;
  readonly rkey: number;
  readonly lengthBytes: number;
  readonly iova: bigint;
  private readonly bytes: Uint8Array;

  constructor(pd: VerbsProtectionDomain, memory: ArrayBufferView, access: number, iova?: bigint) {
    super(pd.device, 'memory region');
    const bytes = pinnable(memory);
    checkAccess(access);
    const at = (access & Access.ZERO_BASED) === 0 ? iova : 0n;
    const out = new Uint32Array(4);
    const rights = access & ~Access.ZERO_BASED;
    const number = pd.device.addon.regMr(pd.number, bytes, rights, at, out);
    if (number <= 0) throw pd.device.registrationError(-number, bytes.length, at);
    this.created(number);
    this.bytes = bytes;
    pin(bytes);
    const [lkey = 0, rkey = 0, low = 0, high = 0] = out;
    this.lkey = lkey;
    this.rkey = rkey;
    this.lengthBytes = bytes.length;
    this.iova = (BigInt(high) << 32n) | BigInt(low);
    pd.device.registeredBytes += bytes.length;
  }

  protected release(number: number): [string, number] {
    return ['ibv_dereg_mr', this.device.addon.deregMr(number)];
  }

  protected override onDestroyed(): void {
    this.device.registeredBytes -= this.lengthBytes;
    unpin(this.bytes);
  }
}

export class VerbsMemoryWindow extends VerbsObject implements MemoryWindow {
  readonly handle: number;

  constructor(pd: VerbsProtectionDomain, type: 1 | 2) {
    super(pd.device, 'memory window');
    this.handle = made('ibv_alloc_mw', pd.device.addon.allocMw(pd.number, type), `type ${type}`);
    this.created(this.handle);
  }

  get rkey(): number {
    return this.device.addon.mwRkey(this.device.number, this.number);
  }

  protected release(number: number): [string, number] {
    return ['ibv_dealloc_mw', this.device.addon.deallocMw(this.device.number, number)];
  }
}

export class VerbsAddressHandle extends VerbsObject implements AddressHandle {
  readonly handle: number;

  constructor(
    private readonly pd: VerbsProtectionDomain,
    addressVector: AddressVector,
  ) {
    super(pd.device, 'address handle');
    const { addon, attributes } = pd.device;
    const path = pathWordsOf(addressVector, pd.device, attributes.portNumber);
    this.handle = made('ibv_create_ah', addon.createAh(pd.number, addressVector.gid, path));
    this.created(this.handle);
  }

  protected release(number: number): [string, number] {
    return ['ibv_destroy_ah', this.device.addon.destroyAh(this.pd.number, number)];
  }
}

function checkAccess(access: number): void {
  const text = `access 0x${access.toString(16)}`;
  if ((access & ~ALL_ACCESS) !== 0) throw new SpiError('EINVAL', `${text} has unknown bits`);
  if ((access & REMOTE_CHANGE) === 0 || (access & Access.LOCAL_WRITE) !== 0) return;
  throw new SpiError('EINVAL', `${text}: remote writes and atomics need LOCAL_WRITE`);
}
