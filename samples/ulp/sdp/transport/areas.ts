/** Memory for the data of SrcAvail and SinkAvail: a fixed number of pieces for a connection. */
import type { LmrSegment } from 'dapl';
import type { Lease } from 'dapl/flow';
import type { Area, Exposed } from '../session/index.js';
import type { Adapter } from './adapter.js';
import { expose } from './exposed.js';

export class Piece implements Area {
  readonly bytes: Uint8Array;
  /** True while a read into it is in flight: until it has ended, the memory stays. */
  private isPosted = false;
  private isReleased = false;

  constructor(
    private readonly adapter: Adapter,
    private readonly lease: Lease,
    private readonly onFree: () => void,
  ) {
    this.bytes = lease.bytes;
  }

  expose(): Exposed | undefined {
    return expose(this.adapter, this.bytes, 'sink');
  }

  /** The segment for a read. */
  segment(lengthBytes: number): LmrSegment {
    this.isPosted = true;
    return this.lease.segment(lengthBytes);
  }

  /** The read has ended, or the connection has. */
  settle(): void {
    this.isPosted = false;
    if (this.isReleased) this.giveBack();
  }

  release(): void {
    this.isReleased = true;
    if (!this.isPosted) this.giveBack();
  }

  private giveBack(): void {
    if (this.lease.isReleased) return;
    this.lease.release();
    this.onFree();
  }
}

export class Areas {
  private taken = 0;

  constructor(
    private readonly adapter: Adapter,
    private readonly most: number,
    private readonly areaBytes: number,
  ) {}

  take(): Piece | undefined {
    if (this.taken === this.most) return undefined;
    const piece = new Piece(this.adapter, this.adapter.take(this.areaBytes), () => this.taken--);
    this.taken++;
    return piece;
  }
}
