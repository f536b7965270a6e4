/** Blocks in memory, which is allocated when they are first written. */
import {
  type BlockBackend,
  type BlockBytes,
  checkExtent,
  checkTransfer,
  type Extent,
  geometryOf,
} from './backend.js';
import { BlockError } from './block-error.js';
import { newSerial } from './identity.js';

/** Unit of allocation, in bytes. */
const PIECE_BYTES = 1 << 16;

export interface MemoryBackendOptions {
  /** Size of the disk; rounded down to whole blocks. */
  readonly sizeBytes: number;
  /** Default 512. */
  readonly blockBytes?: number;
  /** Default: a random one. */
  readonly serial?: string;
}

/** A disk that is lost when the process exits; flush does nothing. */
export class MemoryBackend implements BlockBackend {
  readonly blockBytes: BlockBytes;
  readonly blockCount: bigint;
  readonly isReadOnly = false;
  readonly serial: string;
  private readonly pieces = new Map<number, Uint8Array>();
  private isOpen = true;

  /** @throws RangeError as `geometryOf` */
  constructor({ sizeBytes, blockBytes = 512, serial = newSerial() }: MemoryBackendOptions) {
    this.serial = serial;
    ({ blockBytes: this.blockBytes, blockCount: this.blockCount } = geometryOf(
      sizeBytes,
      blockBytes,
    ));
  }

  /** Bytes of allocated memory. */
  get allocatedBytes(): number {
    return this.pieces.size * PIECE_BYTES;
  }

  async read(lba: bigint, into: Uint8Array): Promise<void> {
    this.check();
    checkTransfer(this, lba, into);
    this.eachPiece(Number(lba) * this.blockBytes, into.length, (index, from, at, length) => {
      const piece = this.pieces.get(index);
      if (piece === undefined) into.fill(0, at, at + length);
      else into.set(piece.subarray(from, from + length), at);
    });
  }

  async write(lba: bigint, from: Uint8Array): Promise<void> {
    this.check();
    checkTransfer(this, lba, from);
    this.eachPiece(Number(lba) * this.blockBytes, from.length, (index, start, at, length) => {
      this.pieceFor(index).set(from.subarray(at, at + length), start);
    });
  }

  async flush(): Promise<void> {
    this.check();
  }

  async discard(lba: bigint, blocks: bigint): Promise<void> {
    this.check();
    checkExtent(this, lba, blocks);
    const bytes = Number(blocks) * this.blockBytes;
    this.eachPiece(Number(lba) * this.blockBytes, bytes, (index, start, _at, length) => {
      if (length === PIECE_BYTES) this.pieces.delete(index);
      else this.pieces.get(index)?.fill(0, start, start + length);
    });
  }

  /** Like `discard`: memory is allocated again when it is needed, or that write fails. */
  writeZeroes(lba: bigint, blocks: bigint): Promise<void> {
    return this.discard(lba, blocks);
  }

  extentAt(lba: bigint): Extent {
    checkExtent(this, lba, 1n);
    const perPiece = PIECE_BYTES / this.blockBytes;
    const first = Math.floor(Number(lba) / perPiece);
    const isMapped = this.pieces.has(first);
    const end = Math.ceil(Number(this.blockCount) / perPiece);
    let index = first + 1;
    while (index < end && this.pieces.has(index) === isMapped) index++;
    const until = BigInt(index * perPiece);
    return { isMapped, blocks: (until < this.blockCount ? until : this.blockCount) - lba };
  }

  async close(): Promise<void> {
    this.isOpen = false;
    this.pieces.clear();
  }

  private check(): void {
    if (!this.isOpen) throw new BlockError('gone', 'The memory was closed');
  }

  private pieceFor(index: number): Uint8Array {
    const there = this.pieces.get(index);
    if (there !== undefined) return there;
    const made = new Uint8Array(PIECE_BYTES);
    this.pieces.set(index, made);
    return made;
  }

  /**
   * Calls `visit` with the index of a piece, the offset in it, the offset in the transfer, and the
   * length.
   */
  private eachPiece(
    offset: number,
    bytes: number,
    visit: (index: number, from: number, at: number, length: number) => void,
  ): void {
    for (let at = 0; at < bytes;) {
      const index = Math.floor((offset + at) / PIECE_BYTES);
      const from = (offset + at) % PIECE_BYTES;
      const length = Math.min(PIECE_BYTES - from, bytes - at);
      visit(index, from, at, length);
      at += length;
    }
  }
}
