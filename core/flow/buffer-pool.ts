/**
 * A pool of registered buffers of one size. It grows in slabs, each one region, up to a limit. A
 * buffer is lent, and returned once.
 */
import { Pz } from '../dat/memory/pz.js';
import type { Lmr } from '../dat/memory/lmr.js';
import type { LmrSegment } from '../dat/memory/segment.js';
import { checkOptions, instanceOf, integer, optional, showAs } from '../spi/checks/index.js';
import { FlowError, flowCall, invalidState, refusalOf } from './flow-error.js';
import { checkWait, type EndError, NO_OPTIONS, type WaitOptions, Waits } from './wait.js';

export interface BufferPoolOptions {
  /** The zone that the buffers are registered in. */
  readonly pz: Pz;
  /** Bytes of one buffer: 1 to 2^30. */
  readonly bufferBytes: number;
  /** Buffers that exist at most: 1 to 2^20; default 2^20. */
  readonly maxBuffers?: number;
  /** Buffers of one slab: 1 to 2^20; default as many as fill 256 KiB. */
  readonly slabBuffers?: number;
}

const MOST_BUFFERS = 2 ** 20;
const OPTIONS = {
  pz: instanceOf(Pz, 'a Pz'),
  bufferBytes: integer(1, 2 ** 30),
  maxBuffers: optional(integer(1, MOST_BUFFERS)),
  slabBuffers: optional(integer(1, MOST_BUFFERS)),
};
const SLAB_BYTES = 256 * 1024;
/** Buffers begin where no two share a line of the processor's cache; atomics need 8. */
const ALIGNMENT = 64;

/** One buffer: in its pool, or lent. */
interface Place {
  readonly segment: LmrSegment;
  readonly offsetBytes: number;
  readonly bytes: Uint8Array;
}

/** Buffers, lent one at a time. */
export class BufferPool {
  static {
    showAs(this, 'BufferPool', ({ bufferBytes, lent, size, maxBuffers }) => {
      return { bufferBytes, lent, size, maxBuffers };
    });
  }

  readonly pz: Pz;
  readonly bufferBytes: number;
  readonly maxBuffers: number;
  private readonly slabBuffers: number;
  private readonly slabs: Lmr[] = [];
  private readonly free: Place[] = [];
  private readonly waits: Waits<Lease>;
  private made = 0;
  private ended: EndError | undefined = undefined;

  /** Registers nothing before the first buffer is taken. @throws FlowError DAT_INVALID_PARAMETER */
  constructor(options: BufferPoolOptions) {
    checkOptions(options, OPTIONS, refusalOf('BufferPool'));
    const { pz, bufferBytes, maxBuffers = MOST_BUFFERS } = options;
    const fitting = Math.max(1, Math.floor(SLAB_BYTES / bufferBytes));
    this.pz = pz;
    this.bufferBytes = bufferBytes;
    this.maxBuffers = maxBuffers;
    this.slabBuffers = Math.min(options.slabBuffers ?? fitting, maxBuffers);
    this.waits = new Waits(pz.core.context, () => `all ${this.maxBuffers} buffers are lent`);
  }

  /** Number of buffers. */
  get size(): number {
    return this.made;
  }

  /** Number of lent buffers. */
  get lent(): number {
    return this.made - this.free.length;
  }

  /**
   * Takes a buffer if one is free and no other call waits; the pool grows for it up to its limit.
   * @throws FlowError DAT_INSUFFICIENT_RESOURCES when no memory can be registered; DAT_ABORT once
   * the pool is closed
   */
  tryTake(): Lease | undefined {
    if (this.ended !== undefined) throw this.ended('pool.take');
    return this.waits.isEmpty ? this.takeFree() : undefined;
  }

  /**
   * Takes a buffer, or waits for one, in the order of the calls.
   * @throws FlowError DAT_TIMEOUT_EXPIRED, DAT_INTERRUPTED_CALL; as `tryTake`
   */
  async take(options: WaitOptions = NO_OPTIONS): Promise<Lease> {
    const operation = 'pool.take';
    checkWait(operation, options);
    return this.tryTake() ?? this.waits.add(operation, options);
  }

  /**
   * Frees the memory; later calls end with DAT_ABORT.
   * @throws FlowError DAT_INVALID_STATE while buffers are lent: nothing has changed then
   */
  close(): void {
    if (this.ended !== undefined) return;
    const operation = 'pool.close';
    if (this.lent > 0) {
      throw invalidState(operation, `${this.lent} of ${this.made} buffers are lent`, this.lent);
    }
    this.ended = (of) =>
      new FlowError('DAT_ABORT', { operation: of, message: 'the pool has been closed' });
    this.free.length = 0;
    this.made = 0;
    for (const slab of this.slabs.splice(0))
      if (!slab.isFreed) flowCall(operation, () => slab.free());
  }

  [Symbol.dispose](): void {
    this.close();
  }

  /** @internal returns a buffer */
  giveBack(place: Place): void {
    if (this.waits.isEmpty || !this.waits.serve(new Lease(this, place))) this.free.push(place);
  }

  private takeFree(): Lease | undefined {
    if (this.free.length === 0 && this.made < this.maxBuffers) this.grow();
    const place = this.free.pop();
    return place === undefined ? undefined : new Lease(this, place);
  }

  private grow(): void {
    const { pz, bufferBytes } = this;
    const count = Math.min(this.slabBuffers, this.maxBuffers - this.made);
    const stride = Math.ceil(bufferBytes / ALIGNMENT) * ALIGNMENT;
    const slab = flowCall('pool.take', () => pz.ia.allocate(count * stride, { pz }));
    this.slabs.push(slab);
    this.made += count;
    // The last one is taken first: from the beginning of the slab.
    for (let i = count - 1; i >= 0; i--) {
      const offsetBytes = i * stride;
      const segment = slab.segment(offsetBytes, bufferBytes);
      this.free.push({ segment, offsetBytes, bytes: segment.bytes });
    }
  }
}

/** A buffer that is lent, until `release()`. */
export class Lease {
  static {
    showAs(this, 'Lease', ({ place }) => ({ released: place === undefined, ...facts(place) }));
  }

  /** @internal use `pool.take()` */
  constructor(
    readonly pool: BufferPool,
    private place: Place | undefined,
  ) {}

  get isReleased(): boolean {
    return this.place === undefined;
  }

  /**
   * The whole buffer.
   * @throws FlowError DAT_INVALID_STATE once it has been released
   */
  get bytes(): Uint8Array {
    return this.lentPlace('lease.bytes').bytes;
  }

  /**
   * A part of the buffer, for a post. There is only one segment, which each call moves: a post
   * copies its numbers.
   * @param lengthBytes default all
   * @param offsetBytes from the beginning of the buffer, default 0
   * @throws FlowError DAT_INVALID_PARAMETER; DAT_INVALID_STATE once it has been released
   */
  segment(lengthBytes = this.pool.bufferBytes, offsetBytes = 0): LmrSegment {
    const operation = 'lease.segment';
    const place = this.lentPlace(operation);
    const { bufferBytes } = this.pool;
    if (!(offsetBytes >= 0 && lengthBytes >= 0 && offsetBytes + lengthBytes <= bufferBytes)) {
      throw new FlowError('DAT_INVALID_PARAMETER', {
        operation,
        message: `${lengthBytes} bytes from ${offsetBytes} on: the buffer has ${bufferBytes}`,
        value: lengthBytes,
      });
    }
    return place.segment.set(place.offsetBytes + offsetBytes, lengthBytes);
  }

  /** @internal the segment, where the last call of `segment` has left it */
  get segments(): LmrSegment {
    return this.lentPlace('lease.segment').segment;
  }

  /**
   * Returns the buffer to the pool. Posted requests that use it must have completed.
   * @throws FlowError DAT_INVALID_STATE when it has been released before
   */
  release(): void {
    const place = this.lentPlace('lease.release');
    this.place = undefined;
    this.pool.giveBack(place);
  }

  [Symbol.dispose](): void {
    if (!this.isReleased) this.release();
  }

  private lentPlace(operation: string): Place {
    if (this.place !== undefined) return this.place;
    throw invalidState(operation, 'the buffer has been released');
  }
}

function facts(place: Place | undefined): object {
  return place === undefined ? {} : { bytes: place.bytes.length, offset: place.offsetBytes };
}
