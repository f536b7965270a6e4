/**
 * Registered memory of an initiator: the consumer's own, which moves without a copy, and buffers
 * for commands whose memory is not registered. It outlives connections.
 */
import { type Ia, type Lmr, MemPrivileges, type Pz } from 'dapl';

const { LOCAL_READ, LOCAL_WRITE, REMOTE_READ, REMOTE_WRITE } = MemPrivileges;
const PRIVILEGES = LOCAL_READ | LOCAL_WRITE | REMOTE_READ | REMOTE_WRITE;
const SMALLEST_BYTES = 4096;

export class InitiatorMemory {
  readonly pz: Pz;
  /** Free buffers by size. */
  private readonly free = new Map<number, Lmr[]>();
  private readonly own = new WeakMap<ArrayBufferLike, Lmr>();
  private readonly all: Lmr[] = [];
  /** The longest buffer that the device supports. */
  readonly maxBufferBytes: number;

  /** @throws DatError as `ia.createPz` */
  constructor(readonly ia: Ia) {
    this.pz = ia.createPz();
    this.maxBufferBytes = 2 ** Math.floor(Math.log2(ia.query().ia.maxLmrBlockSize));
  }

  /**
   * A consumer's own registered memory.
   * @throws DatError as `ia.allocate`
   */
  allocate(lengthBytes: number): Uint8Array {
    const lmr = this.register(lengthBytes);
    this.own.set(lmr.bytes.buffer, lmr);
    return lmr.bytes;
  }

  /** The region that contains the bytes; undefined if they must be copied. */
  regionOf(bytes: Uint8Array): Lmr | undefined {
    return this.own.get(bytes.buffer);
  }

  /** A buffer of at least this length. @throws DatError as `ia.allocate` */
  take(lengthBytes: number): Lmr {
    const size = Math.max(SMALLEST_BYTES, 2 ** Math.ceil(Math.log2(lengthBytes)));
    return this.free.get(size)?.pop() ?? this.register(size);
  }

  giveBack(lmr: Lmr): void {
    const list = this.free.get(lmr.lengthBytes);
    if (list === undefined) this.free.set(lmr.lengthBytes, [lmr]);
    else list.push(lmr);
  }

  /** Frees everything; the connections that could access it are closed already. */
  close(): void {
    if (this.ia.isFreed) return;
    for (const lmr of this.all) if (!lmr.isFreed) lmr.free();
    this.all.length = 0;
    this.free.clear();
    if (!this.pz.isFreed) this.pz.free();
  }

  private register(lengthBytes: number): Lmr {
    const lmr = this.ia.allocate(lengthBytes, { pz: this.pz, privileges: PRIVILEGES });
    this.all.push(lmr);
    return lmr;
  }
}
