/**
 * The bytes of an RMPP transfer that is being received. Memory grows with what has come, never with
 * what is announced, and all transfers of a module share one allowance (rmpp-limits.ts).
 */
import { MAD_BYTES } from '../../core/spi/index.js';
import type { RmppAllowance } from './rmpp-limits.js';
import { RMPP_DATA_LENGTH } from './wire/rmpp-header.js';

export type Placing = 'placed' | 'duplicate' | 'inconsistent' | 'tooMuch';

const FIRST_BYTES = 4096;

export class Reassembly {
  /** Segments 1 to this one are here. */
  inOrder = 0;
  private readonly dataBytes: number;
  private buffer: Uint8Array = new Uint8Array(0);
  /** Segments beyond `inOrder` that are here. */
  private readonly ahead = new Set<number>();
  private lastSegment = Infinity;
  private lastLength = 0;
  private announced = 0;

  constructor(
    private readonly headerBytes: number,
    private readonly allowance: RmppAllowance,
  ) {
    this.dataBytes = MAD_BYTES - headerBytes;
  }

  get isComplete(): boolean {
    return this.inOrder === this.lastSegment;
  }

  /** Whether a segment has come before an earlier one. */
  get hasHole(): boolean {
    return this.ahead.size > 0;
  }

  /**
   * Places a DATA segment.
   * @param number within the window
   * @param payloadLength as its RMPP header says: 0 where nothing is announced
   */
  place(mad: Uint8Array, number: number, isLast: boolean, payloadLength: number): Placing {
    if (number <= this.inOrder || this.ahead.has(number)) return 'duplicate';
    if (number === 1) this.announced = payloadLength;
    if (!this.isConsistent(number, isLast, payloadLength)) return 'inconsistent';
    if (this.announced > this.allowance.limits.maxTransferBytes) return 'tooMuch';
    if (!this.makeRoom(this.headerBytes + number * this.dataBytes)) return 'tooMuch';
    if (number === 1) this.buffer.set(mad.subarray(0, this.headerBytes));
    if (isLast) {
      this.lastSegment = number;
      this.lastLength = payloadLength;
    }
    const at = this.headerBytes + (number - 1) * this.dataBytes;
    this.buffer.set(mad.subarray(this.headerBytes, MAD_BYTES), at);
    this.ahead.add(number);
    while (this.ahead.delete(this.inOrder + 1)) this.inOrder++;
    return 'placed';
  }

  /** All of it, once complete: the first segment's headers, then the data. */
  get bytes(): Uint8Array {
    const pad = RMPP_DATA_LENGTH - this.lastLength;
    return this.buffer.subarray(0, this.headerBytes + this.inOrder * this.dataBytes - pad);
  }

  release(): void {
    this.allowance.giveBack(this.buffer.length);
    this.buffer = new Uint8Array(0);
    this.ahead.clear();
  }

  private isConsistent(number: number, isLast: boolean, payloadLength: number): boolean {
    if (number > this.lastSegment) return false;
    if (isLast) {
      const least = RMPP_DATA_LENGTH - this.dataBytes;
      if (payloadLength < least || payloadLength > RMPP_DATA_LENGTH) return false;
      for (const other of this.ahead) if (other > number) return false;
    }
    const { announced } = this;
    if (announced === 0) return true;
    const count = Math.ceil(announced / RMPP_DATA_LENGTH);
    if (number !== count) return number < count && !isLast;
    return isLast && payloadLength === announced - (count - 1) * RMPP_DATA_LENGTH;
  }

  private makeRoom(bytes: number): boolean {
    const { buffer } = this;
    if (bytes <= buffer.length) return true;
    let wanted = Math.max(buffer.length, FIRST_BYTES);
    while (wanted < bytes) wanted *= 2;
    wanted = Math.max(bytes, Math.min(wanted, this.allowance.limits.maxTransferBytes));
    if (!this.allowance.take(wanted - buffer.length, wanted)) return false;
    this.buffer = new Uint8Array(wanted);
    this.buffer.set(buffer);
    return true;
  }
}
