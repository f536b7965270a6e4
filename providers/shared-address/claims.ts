/**
 * Registry of the listeners of a shared device. A service id, with the mask of the bits that count,
 * and a class of management datagrams have one owner process. A lookup and a claim are one step
 * under the processes' lock; a lookup alone needs no lock.
 */
import { SpiError } from '../../core/spi/index.js';
import { CLASSES, LISTENERS, type TableMemory } from './table-layout.js';

export interface TableLock {
  /** @throws SpiError('EBUSY') a process that holds it is stopped */
  withLock<T>(body: () => T): T;
}

export class Claims {
  constructor(
    private readonly table: TableMemory,
    private readonly lock: TableLock,
    private readonly slot: number,
  ) {}

  /**
   * @throws SpiError('EADDRINUSE') another process listens there; ('ENOMEM') 4,096 listen already;
   * ('EBUSY')
   */
  claimService(serviceId: bigint, mask: bigint): void {
    const { table } = this;
    this.lock.withLock(() => {
      const entries = table.listenerEntries;
      let free = entries;
      for (let i = entries - 1; i >= 0; i--) {
        const at = listenerAt(i);
        const owner = table.ownerAt(at);
        if (owner === undefined) free = i;
        else if (owner !== this.slot && overlaps(table, at, serviceId, mask)) {
          throw new SpiError(
            'EADDRINUSE',
            `another process of this shared device (slot ${owner}) listens on ` +
              `0x${serviceId.toString(16)}`,
          );
        }
      }
      if (free === LISTENERS.COUNT) {
        throw new SpiError(
          'ENOMEM',
          `${LISTENERS.COUNT} listeners are the most that processes of a shared device can have`,
        );
      }
      const at = listenerAt(free);
      table.setU64(at + 2, serviceId);
      table.setU64(at + 4, mask);
      table.setOwner(at, this.slot);
      if (free === entries) table.listenerEntries = entries + 1;
    });
  }

  /** Releases a claim; does nothing if there is none. */
  releaseService(serviceId: bigint, mask: bigint): void {
    const { table } = this;
    for (let i = 0; i < table.listenerEntries; i++) {
      const at = listenerAt(i);
      if (table.ownerAt(at) !== this.slot) continue;
      if (table.u64At(at + 2) !== serviceId || table.u64At(at + 4) !== mask) continue;
      table.setOwner(at, undefined);
      return;
    }
  }

  /**
   * @param key of 32 bits: class, version, methods or whatever has one owner
   * @throws SpiError('EADDRINUSE'), ('ENOMEM') beyond 256 of all processes, ('EBUSY')
   */
  claimClass(key: number): void {
    const { table } = this;
    this.lock.withLock(() => {
      let free: number | undefined;
      for (let i = 0; i < CLASSES.COUNT; i++) {
        const at = classAt(i);
        const owner = table.ownerAt(at);
        if (owner === undefined) free ??= at;
        else if (owner !== this.slot && table.words[at + 1] === key) {
          const whose = `another process of this shared device (slot ${owner})`;
          throw new SpiError('EADDRINUSE', `${whose} takes requests of class 0x${hex(key)}`);
        }
      }
      if (free === undefined) {
        throw new SpiError(
          'ENOMEM',
          `${CLASSES.COUNT} agents are the most that processes of a shared device can have`,
        );
      }
      table.words[free + 1] = key;
      table.setOwner(free, this.slot);
    });
  }

  releaseClass(key: number): void {
    const { table } = this;
    for (let i = 0; i < CLASSES.COUNT; i++) {
      const at = classAt(i);
      if (table.ownerAt(at) !== this.slot || table.words[at + 1] !== key) continue;
      table.setOwner(at, undefined);
      return;
    }
  }
}

/** The slot of the process that listens there, if one does. */
export function listenerOf(table: TableMemory, serviceId: bigint): number | undefined {
  for (let i = 0; i < table.listenerEntries; i++) {
    const at = listenerAt(i);
    const owner = table.ownerAt(at);
    if (owner !== undefined && overlaps(table, at, serviceId, ALL_BITS)) return owner;
  }
  return undefined;
}

export function classOwnerOf(table: TableMemory, key: number): number | undefined {
  for (let i = 0; i < CLASSES.COUNT; i++) {
    const at = classAt(i);
    const owner = table.ownerAt(at);
    if (owner !== undefined && table.words[at + 1] === key) return owner;
  }
  return undefined;
}

/** Drops the claims of a process that is gone. */
export function dropClaims(table: TableMemory, slot: number): void {
  for (let i = 0; i < table.listenerEntries; i++) {
    if (table.ownerAt(listenerAt(i)) === slot) table.setOwner(listenerAt(i), undefined);
  }
  for (let i = 0; i < CLASSES.COUNT; i++) {
    if (table.ownerAt(classAt(i)) === slot) table.setOwner(classAt(i), undefined);
  }
}

const ALL_BITS = (1n << 64n) - 1n;

function overlaps(table: TableMemory, at: number, serviceId: bigint, mask: bigint): boolean {
  const both = table.u64At(at + 4) & mask;
  return (table.u64At(at + 2) & both) === (serviceId & both);
}

function listenerAt(index: number): number {
  return LISTENERS.AT + LISTENERS.WORDS * index;
}

function classAt(index: number): number {
  return CLASSES.AT + CLASSES.WORDS * index;
}

function hex(key: number): string {
  return key.toString(16);
}
