/** The receives of a connection: one buffer each, which may be exchanged for a larger one. */
import type { Ep, LmrSegment } from 'dapl';
import type { Lease } from 'dapl/flow';
import type { Adapter } from './adapter.js';

const ALIGNMENT = 64;

/** Buffers of one size, in one lease. */
interface Block {
  readonly lease: Lease;
  readonly bytes: Uint8Array;
  readonly stride: number;
  readonly bufferBytes: number;
}

export class Receives {
  private readonly blocks: Block[] = [];
  /** The block of each receive. */
  private readonly homes: Block[] = [];

  /** @throws FlowError; nothing is left then */
  constructor(
    private readonly adapter: Adapter,
    private readonly count: number,
    bufferBytes: number,
  ) {
    const block = this.grow(bufferBytes);
    for (let slot = 0; slot < count; slot++) this.homes.push(block);
  }

  /** @throws DatError as `ep.postRecv`; FlowError where there is no memory for a larger one */
  post(ep: Ep, slot: number, bufferBytes: number): void {
    let home = this.homes[slot] as Block;
    if (home.bufferBytes < bufferBytes) {
      const last = this.blocks.at(-1) as Block;
      home = last.bufferBytes >= bufferBytes ? last : this.grow(bufferBytes);
      this.homes[slot] = home;
    }
    ep.postRecv(segmentOf(home, slot), slot);
  }

  view(slot: number, lengthBytes: number): Uint8Array {
    const { bytes, stride } = this.homes[slot] as Block;
    return bytes.subarray(slot * stride, slot * stride + lengthBytes);
  }

  /** Nothing is posted any more. */
  free(): void {
    for (const { lease } of this.blocks.splice(0)) lease.release();
  }

  private grow(bufferBytes: number): Block {
    const stride = Math.ceil(bufferBytes / ALIGNMENT) * ALIGNMENT;
    const lease = this.adapter.take(stride * this.count);
    const block = { lease, bytes: lease.bytes, stride, bufferBytes };
    this.blocks.push(block);
    return block;
  }
}

function segmentOf({ lease, stride, bufferBytes }: Block, slot: number): LmrSegment {
  return lease.segment(bufferBytes, slot * stride);
}
