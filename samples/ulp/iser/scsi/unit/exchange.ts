/**
 * A command in progress: moves its bytes, never more than the initiator expects, and counts them
 * for the residual.
 */
import { type AbortFlag, type BufferPool, type ChunkWork, inChunks } from '../../../block/index.js';
import type { Residual, ScsiCommand } from '../common/command.js';
import { ScsiError } from '../common/scsi-error.js';

/** The command was aborted, or its connection has ended: no answer is sent. */
export class TaskAborted extends Error {
  override readonly name = 'TaskAborted';
}

export class Exchange {
  readonly cdb: DataView;
  /** Bytes of the command itself, in its direction. */
  private scsiBytes = 0;

  /** @param pool buffers for the bytes in transit */
  constructor(
    readonly command: ScsiCommand,
    private readonly pool: BufferPool,
  ) {
    const { buffer, byteOffset, byteLength } = command.cdb;
    this.cdb = new DataView(buffer, byteOffset, byteLength);
  }

  get nexus(): string {
    return this.command.initiatorPort;
  }

  private get signal(): AbortFlag {
    return this.command.abort.signal;
  }

  get residual(): Residual {
    const expected = this.command.dataOutBytes + this.command.dataInBytes;
    if (this.scsiBytes > expected) return { kind: 'overflow', bytes: this.scsiBytes - expected };
    if (this.scsiBytes < expected) return { kind: 'underflow', bytes: expected - this.scsiBytes };
    return { kind: 'none', bytes: 0 };
  }

  /** @throws TaskAborted */
  checkAborted(): void {
    if (this.signal.aborted) throw new TaskAborted();
  }

  /** Sends parameter data to the initiator, truncated to the allocation length. */
  async respond(data: Uint8Array, allocationLength: number): Promise<void> {
    this.scsiBytes = Math.min(data.length, allocationLength);
    const bytes = Math.min(this.scsiBytes, this.command.dataInBytes);
    await this.chunks(
      bytes,
      1,
      async (offset, chunk) => chunk.set(data.subarray(offset, offset + chunk.length)),
      (offset, chunk) => this.command.push(offset, chunk),
    );
  }

  /**
   * Fetches a parameter list, or other data-out that is small enough for its own memory. @throws
   * ScsiError if the initiator sends less than `bytes`
   */
  async gather(bytes: number): Promise<Uint8Array> {
    this.expect(bytes);
    if (this.command.dataOutBytes < bytes) {
      throw ScsiError.check('INVALID_FIELD_IN_INFORMATION_UNIT');
    }
    const list = new Uint8Array(bytes);
    await this.chunks(
      bytes,
      1,
      (offset, chunk) => this.command.pull(offset, chunk),
      async (offset, chunk) => list.set(chunk, offset),
    );
    return list;
  }

  /** Sets the bytes of the command itself, for the residual. */
  expect(bytes: number): void {
    this.scsiBytes = bytes;
  }

  protected async chunks(
    bytes: number,
    unitBytes: number,
    first: ChunkWork,
    second: ChunkWork,
    scratch = false,
  ): Promise<void> {
    this.checkAborted();
    const { pool, signal } = this;
    try {
      const borrower = this.nexus;
      await inChunks({ pool, bytes, unitBytes, signal, scratch, borrower }, first, second);
    } catch (error) {
      // An error that the abort has caused is reported as the abort.
      this.checkAborted();
      throw error;
    }
  }
}
