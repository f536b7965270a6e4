/**
 * A disk image: a sparse file. A discard punches holes, so that the blocks of the file shrink; a
 * flush is fdatasync(2), which also makes the holes durable, and a write with FUA is a write and a
 * flush of its own.
 */
import { constants } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import {
  type BlockBackend,
  type BlockBytes,
  checkExtent,
  checkTransfer,
  type Extent,
  geometryOf,
  type WriteOptions,
} from './backend.js';
import { BlockError, type BlockFailure } from './block-error.js';
import { type FileAttributes, serialOf, systemAttributes } from './identity.js';
import { RangeSet } from './range-set.js';

/** What is written at once where no hole can be punched. */
const ZEROES = new Uint8Array(1 << 20);
/** Discarded ranges that are remembered; beyond that, holes are said to be mapped. */
const MOST_HOLES = 1 << 16;

export interface FileBackendOptions {
  readonly path: string;
  /** Default 512. */
  readonly blockBytes?: number;
  /** Makes the file, or makes it longer, with a hole. Without it the file has to be there. */
  readonly sizeBytes?: number;
  /** Default false. */
  readonly readOnly?: boolean;
  /** Instead of the one of the system; `undefined` to write zeroes. */
  readonly punchHole?: HolePuncher | undefined;
  /** Instead of the one that is kept with the file. */
  readonly serial?: string;
  /** Instead of those of the system; `undefined` to keep the serial number in a file. */
  readonly attributes?: FileAttributes | undefined;
  /** Told of a copy, which gets a serial number of its own, and of one that cannot be kept. */
  readonly onNote?: (note: string) => void;
}

export class FileBackend implements BlockBackend {
  /** Blocks known to take no space. */
  private readonly holes = new RangeSet();
  private closing: Promise<void> | undefined;
  /** A flush has failed: the system may have dropped what it could not write. */
  private lost: BlockError | undefined;

  private constructor(
    readonly path: string,
    private readonly file: FileHandle,
    readonly blockBytes: BlockBytes,
    readonly blockCount: bigint,
    readonly isReadOnly: boolean,
    readonly serial: string,
    private punchHole: HolePuncher | undefined,
  ) {}

  /**
   * @throws RangeError as `geometryOf`, and for a `sizeBytes` below what the file has
   * @throws the system's error for a file that cannot be opened or made longer
   * @throws Error for a serial number that cannot be read
   */
  static async open(options: FileBackendOptions): Promise<FileBackend> {
    const { path, blockBytes = 512, sizeBytes, readOnly = false, onNote = () => {} } = options;
    const create = sizeBytes === undefined ? 0 : constants.O_CREAT;
    const file = await open(path, readOnly ? constants.O_RDONLY : constants.O_RDWR | create);
    try {
      const there = (await file.stat()).size;
      if (sizeBytes !== undefined && sizeBytes < there) {
        throw new RangeError(`${path} has ${there} bytes, which ${sizeBytes} would cut off`);
      }
      const geometry = geometryOf(sizeBytes ?? there, blockBytes);
      if (sizeBytes !== undefined && sizeBytes > there) await file.truncate(sizeBytes);
      const puncher = 'punchHole' in options ? options.punchHole : await systemPuncher();
      const attributes = 'attributes' in options ? options.attributes : await systemAttributes();
      const { serial = await serialOf({ path, file, attributes, onNote }) } = options;
      const { blockBytes: ofBlock, blockCount } = geometry;
      return new FileBackend(path, file, ofBlock, blockCount, readOnly, serial, puncher);
    } catch (error) {
      await file.close();
      throw error;
    }
  }

  async read(lba: bigint, into: Uint8Array): Promise<void> {
    checkTransfer(this, lba, into);
    const offset = this.offsetOf(lba);
    await this.attempt('medium-read', lba, async () => {
      for (let at = 0; at < into.length;) {
        const { bytesRead } = await this.file.read(into, at, into.length - at, offset + at);
        if (bytesRead === 0) throw new Error(`${this.path} ends at byte ${offset + at}`);
        at += bytesRead;
      }
    });
  }

  async write(lba: bigint, from: Uint8Array, { fua = false }: WriteOptions = {}): Promise<void> {
    checkTransfer(this, lba, from);
    this.checkWritable(lba);
    await this.attempt('medium-write', lba, () => this.store(this.offsetOf(lba), from));
    this.holes.remove(lba, BigInt(from.length / this.blockBytes));
    if (fua) await this.flush();
  }

  /** A flush that has failed fails for ever: no later one can tell what was lost meanwhile. */
  async flush(): Promise<void> {
    if (this.isReadOnly) return;
    if (this.lost !== undefined) throw this.lost;
    try {
      await this.attempt('medium-write', undefined, () => this.file.datasync());
    } catch (error) {
      this.lost = error as BlockError;
      throw error;
    }
  }

  async discard(lba: bigint, blocks: bigint): Promise<void> {
    checkExtent(this, lba, blocks);
    this.checkWritable(lba);
    if (blocks === 0n) return;
    const offset = this.offsetOf(lba);
    const bytes = Number(blocks) * this.blockBytes;
    await this.attempt('medium-write', lba, async () => {
      if (!(await this.tryPunch(offset, bytes))) await this.storeZeroes(offset, bytes);
      else if (this.holes.rangeCount < MOST_HOLES) this.holes.add(lba, blocks);
    });
  }

  async writeZeroes(
    lba: bigint,
    blocks: bigint,
    { fua = false }: WriteOptions = {},
  ): Promise<void> {
    checkExtent(this, lba, blocks);
    this.checkWritable(lba);
    const bytes = Number(blocks) * this.blockBytes;
    await this.attempt('medium-write', lba, () => this.storeZeroes(this.offsetOf(lba), bytes));
    this.holes.remove(lba, blocks);
    if (fua) await this.flush();
  }

  extentAt(lba: bigint): Extent {
    checkExtent(this, lba, 1n);
    const { isIn, blocks } = this.holes.runAt(lba, this.blockCount);
    return { isMapped: !isIn, blocks };
  }

  close(): Promise<void> {
    this.closing ??= this.flush().finally(() => this.file.close());
    return this.closing;
  }

  private offsetOf(lba: bigint): number {
    return Number(lba) * this.blockBytes;
  }

  private checkWritable(lba: bigint): void {
    if (this.isReadOnly) throw new BlockError('read-only', `${this.path} is read-only`, lba);
  }

  /** False where the file system has no holes; that is then remembered. */
  private async tryPunch(offset: number, bytes: number): Promise<boolean> {
    if (this.punchHole === undefined) return false;
    try {
      await this.punchHole(this.file.fd, offset, bytes);
      return true;
    } catch (error) {
      if (!isUnsupported(error)) throw error;
      this.punchHole = undefined;
      return false;
    }
  }

  private async store(offset: number, from: Uint8Array): Promise<void> {
    for (let at = 0; at < from.length;) {
      at += (await this.file.write(from, at, from.length - at, offset + at)).bytesWritten;
    }
  }

  private async storeZeroes(offset: number, bytes: number): Promise<void> {
    for (let at = 0; at < bytes; at += ZEROES.length) {
      await this.store(offset + at, ZEROES.subarray(0, Math.min(ZEROES.length, bytes - at)));
    }
  }

  /** What the system refuses becomes what it means for blocks. */
  private async attempt(
    otherwise: BlockFailure,
    lba: bigint | undefined,
    work: () => Promise<void>,
  ): Promise<void> {
    if (this.closing !== undefined && this.file.fd === -1) {
      throw new BlockError('gone', `${this.path} was closed`, lba);
    }
    try {
      await work();
    } catch (error) {
      const { code = '', message } = error as NodeJS.ErrnoException;
      const failure = FAILURES[code] ?? otherwise;
      throw new BlockError(failure, `${this.path}: ${message}`, lba, { cause: error });
    }
  }
}

const FAILURES: Readonly<Record<string, BlockFailure>> = {
  ENOSPC: 'no-space',
  EDQUOT: 'no-space',
  EFBIG: 'no-space',
  EROFS: 'read-only',
  EBADF: 'gone',
};

function isUnsupported(error: unknown): boolean {
  return ['EOPNOTSUPP', 'ENOTSUP', 'ENOSYS'].includes((error as NodeJS.ErrnoException).code ?? '');
}

// Holes in files: fallocate(2) with FALLOC_FL_PUNCH_HOLE, which Node does not have.

/** Bytes of a file read as zeroes; whole blocks of the file system then take no space. */
type HolePuncher = (fd: number, offset: number, bytes: number) => Promise<void>;

/**
 * That of fs-native-extensions, which is an optional dependency: without an addon for this system
 * there is none, and discarded blocks are zeroes that take space.
 */
async function systemPuncher(): Promise<HolePuncher | undefined> {
  try {
    const { trim } = await import('fs-native-extensions');
    return trim;
  } catch {
    return undefined;
  }
}
