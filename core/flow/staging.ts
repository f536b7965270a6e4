/** Registered memory that a request uses in place of bytes that are not registered. */
import type { Lmr } from '../dat/memory/lmr.js';
import { LmrSegment } from '../dat/memory/segment.js';
import type { Lease } from './buffer-pool.js';
import { flowCall } from './flow-error.js';
import type { Held } from './requests.js';
import type { Space } from './space.js';

/** Memory of a request, given back when it has completed. */
export interface OwnMemory extends Held {
  readonly segments: LmrSegment;
  /** The memory, from the first byte of the segment on; it may be longer. */
  readonly bytes: Uint8Array;
}

/** Memory larger than a buffer of the pool: a region for this request alone. */
class Region implements OwnMemory {
  readonly segments: LmrSegment;

  constructor(private readonly lmr: Lmr) {
    this.segments = lmr.segment();
  }

  get bytes(): Uint8Array {
    return this.lmr.bytes;
  }

  release(): void {
    if (!this.lmr.isFreed) this.lmr.free();
  }
}

/** The consumer's memory: there is nothing to give back. */
class Given implements OwnMemory {
  constructor(readonly segments: LmrSegment) {}

  get bytes(): Uint8Array {
    return this.segments.bytes;
  }

  release(): void {
    // The consumer keeps it.
  }
}

/** Copies the bytes of a read to their destination. */
export class CopyBack implements OwnMemory {
  constructor(
    private readonly memory: OwnMemory,
    private readonly into: Uint8Array,
  ) {}

  get segments(): LmrSegment {
    return this.memory.segments;
  }

  get bytes(): Uint8Array {
    return this.memory.bytes;
  }

  release(isWanted: boolean): void {
    if (isWanted) this.into.set(this.bytes.subarray(0, this.into.length));
    this.memory.release(isWanted);
  }
}

/**
 * Memory for a request.
 * @param bufferBytes of the pool that serves what fits
 * @param copies its bytes are what is sent
 * @returns undefined for no bytes at all
 * @throws FlowError as `ia.allocate`
 */
export function ownMemory(
  operation: string,
  space: Space,
  bufferBytes: number,
  data: Uint8Array | LmrSegment,
  copies: boolean,
): OwnMemory | undefined {
  if (data instanceof LmrSegment) return new Given(data);
  const { length } = data;
  if (length === 0) return undefined;
  const own = length <= bufferBytes ? pooled(space, bufferBytes, length) : undefined;
  const memory = own ?? new Region(allocated(operation, space, length));
  if (copies) memory.bytes.set(data);
  return memory;
}

/** A buffer of the pool, cut to length: there is one segment of it. */
function pooled(space: Space, bufferBytes: number, lengthBytes: number): Lease | undefined {
  const lease = space.pool(bufferBytes).tryTake();
  lease?.segment(lengthBytes);
  return lease;
}

function allocated(operation: string, { pz }: Space, lengthBytes: number): Lmr {
  return flowCall(operation, () => pz.ia.allocate(lengthBytes, { pz }));
}
