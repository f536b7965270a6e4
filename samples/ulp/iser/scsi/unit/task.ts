/** A command in progress at a logical unit: moves blocks to and from the initiator. */
import type { BufferPool, ChunkWork } from '../../../block/index.js';
import type { ScsiCommand } from '../common/command.js';
import { Exchange } from './exchange.js';
import type { LogicalUnit } from './logical-unit.js';

export class Task extends Exchange {
  constructor(
    readonly unit: LogicalUnit,
    command: ScsiCommand,
    pool: BufferPool,
  ) {
    super(command, pool);
  }

  /** Do, then push: blocks of the medium to the initiator, the last one perhaps in part. */
  async send(bytes: number, read: ChunkWork): Promise<void> {
    this.expect(bytes);
    const wanted = Math.min(bytes, this.command.dataInBytes);
    const { blockBytes } = this.unit.backend;
    const whole = Math.ceil(wanted / blockBytes) * blockBytes;
    await this.chunks(whole, blockBytes, read, (offset, chunk) =>
      this.command.push(offset, chunk.subarray(0, Math.min(chunk.length, wanted - offset))),
    );
  }

  /**
   * Pull, then do: whole blocks of the initiator, up to what it has.
   * @param scratch whether the work needs a second buffer of the same size
   */
  async receive(bytes: number, write: ChunkWork, scratch = false): Promise<void> {
    this.expect(bytes);
    const { blockBytes } = this.unit.backend;
    const there = Math.min(bytes, this.command.dataOutBytes);
    const whole = Math.floor(there / blockBytes) * blockBytes;
    const pull: ChunkWork = (offset, chunk) => this.command.pull(offset, chunk);
    await this.chunks(whole, blockBytes, pull, write, scratch);
  }

  /** Chunks of the medium that go nowhere, as VERIFY without data asks for. */
  async touch(bytes: number, read: ChunkWork): Promise<void> {
    await this.chunks(bytes, this.unit.backend.blockBytes, read, async () => {});
  }
}
