/** An area of memory that is published to the peer of one connection (riomap of librdmacm). */
import { type Ia, type Lmr, MemPrivileges, type Pz } from 'dapl';
import type { Session } from '../session/index.js';
import { errorOf } from './link.js';
import { regionOf } from './memory.js';

export interface IomapOptions {
  /** Bytes to allocate (zeroed), 1 to 2^32 - 1; or memory to register. */
  readonly memory: number | Uint8Array;
  /** u64: the peer's name for the first byte; default 0. */
  readonly offset?: bigint;
}

const PRIVILEGES =
  MemPrivileges.LOCAL_READ | MemPrivileges.LOCAL_WRITE | MemPrivileges.REMOTE_WRITE;

export class Iomap {
  private constructor(
    private readonly lmr: Lmr,
    private readonly session: Session,
    private readonly slot: number,
  ) {}

  /** @internal @throws RangeError, StreamError as `stream.iomap` */
  static publish(ia: Ia, pz: Pz, session: Session, { memory, offset = 0n }: IomapOptions): Iomap {
    let lmr: Lmr;
    try {
      const options = { pz, privileges: PRIVILEGES };
      lmr =
        typeof memory === 'number' ? ia.allocate(memory, options) : ia.createLmr(memory, options);
    } catch (error) {
      throw errorOf(error, { syscall: 'iomap' });
    }
    const slot = session.publish({ offset, region: regionOf(lmr, 0, lmr.lengthBytes) });
    if (slot !== undefined) return new Iomap(lmr, session, slot);
    lmr.free();
    throw new RangeError(`one area more: the peer has announced ${session.iomapSlots}`);
  }

  /** Bytes that the peer writes to. */
  get bytes(): Uint8Array {
    return this.lmr.bytes;
  }

  /**
   * Withdraws the area (riounmap): a later write of the peer breaks the connection. A second call
   * is a no-op.
   */
  unmap(): void {
    if (this.lmr.isFreed) return;
    this.session.withdraw(this.slot);
    this.lmr.free();
  }
}
