/**
 * The receive buffers of one connection: a part of a slab that all connections of a zone share, and
 * one segment that moves over it. So a connection needs no registration, and few objects.
 */
import { assert } from '../spi/checks/index.js';
import type { LmrSegment } from '../dat/memory/segment.js';
import type { Lease } from './buffer-pool.js';
import { invalidState } from './flow-error.js';
import type { Space } from './space.js';

const ALIGNMENT = 64;

/** Bytes of one buffer, including the gap to the next. */
function strideOf(bufferBytes: number): number {
  return Math.ceil(bufferBytes / ALIGNMENT) * ALIGNMENT;
}

/** Bytes of all buffers of a connection. */
export function areaBytes(buffers: number, bufferBytes: number): number {
  return buffers * strideOf(bufferBytes);
}

export interface ReceiveAreaInit {
  readonly buffers: number;
  readonly bufferBytes: number;
  /** Bytes in front of the payload in each buffer. */
  readonly skipBytes: number;
  /** Posts a receive, with its number as the cookie. */
  readonly post: (segment: LmrSegment, slot: number) => void;
  /** Called when it is closed and no message uses a buffer any more. */
  readonly onEmpty: () => void;
}

export class ReceiveArea {
  /** Messages that hold their receive buffer. */
  private outside = 0;
  private closed = false;
  private readonly memory: Uint8Array;
  private readonly stride: number;

  constructor(
    private readonly lease: Lease,
    private readonly init: ReceiveAreaInit,
  ) {
    this.memory = lease.bytes;
    this.stride = strideOf(init.bufferBytes);
  }

  /** True if all buffers are in messages: none is posted. */
  get isExhausted(): boolean {
    return this.outside === this.init.buffers;
  }

  postAll(): void {
    for (let slot = 0; slot < this.init.buffers; slot++) this.postOne(slot);
  }

  /** Marks the buffer as used by a message. */
  take(): void {
    this.outside++;
    assert(this.outside <= this.init.buffers, 'a buffer is in one message', this.outside);
  }

  /** A view of a receive buffer. */
  view(slot: number, lengthBytes: number): Uint8Array {
    const start = this.startOf(slot);
    return this.memory.subarray(start, start + lengthBytes);
  }

  /** A copy of the same bytes. */
  copy(slot: number, lengthBytes: number): Uint8Array {
    const start = this.startOf(slot);
    return this.memory.slice(start, start + lengthBytes);
  }

  /** Takes back the buffer of a message. */
  giveBack(slot: number): void {
    assert(this.outside > 0, 'a buffer comes back once', slot);
    this.outside--;
    if (!this.closed) this.postOne(slot);
    else if (this.outside === 0) this.empty();
  }

  /** Stops posting; the memory is freed with the last message. */
  close(): void {
    if (this.closed) return;
    this.closed = true;
    if (this.outside === 0) this.empty();
  }

  private startOf(slot: number): number {
    return slot * this.stride + this.init.skipBytes;
  }

  private postOne(slot: number): void {
    const { post, bufferBytes } = this.init;
    post(this.lease.segment(bufferBytes, slot * this.stride), slot);
  }

  private empty(): void {
    this.lease.release();
    this.init.onEmpty();
  }
}

/** Memory for an area, from the buffers of that size. @throws FlowError */
export function areaOf(operation: string, space: Space, lengthBytes: number): Lease {
  const lease = space.pool(lengthBytes).tryTake();
  if (lease === undefined) throw invalidState(operation, 'every receive area is lent', lengthBytes);
  return lease;
}
