/** A wrapper that makes any backend read-only. */
import type { BlockBackend, BlockBytes, Extent } from './backend.js';
import { BlockError } from './block-error.js';

export class ReadOnlyBackend implements BlockBackend {
  readonly isReadOnly = true;

  constructor(private readonly below: BlockBackend) {}

  get blockBytes(): BlockBytes {
    return this.below.blockBytes;
  }

  get blockCount(): bigint {
    return this.below.blockCount;
  }

  get serial(): string {
    return this.below.serial;
  }

  read(lba: bigint, into: Uint8Array): Promise<void> {
    return this.below.read(lba, into);
  }

  write(lba: bigint): Promise<void> {
    return refuse(lba);
  }

  async flush(): Promise<void> {}

  discard(lba: bigint): Promise<void> {
    return refuse(lba);
  }

  writeZeroes(lba: bigint): Promise<void> {
    return refuse(lba);
  }

  extentAt(lba: bigint): Extent {
    return this.below.extentAt(lba);
  }

  close(): Promise<void> {
    return this.below.close();
  }
}

async function refuse(lba: bigint): Promise<void> {
  throw new BlockError('read-only', 'The disk is read-only', lba);
}
