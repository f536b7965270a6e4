/**
 * A disk image: a sparse file. A discard punches holes, so that the file takes fewer blocks. A
 * flush is fdatasync(2), which also makes the holes durable. A write with FUA is a write followed
 * by its own flush.
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

/** Zeroes to write if the file system cannot punch holes. */
const ZEROES = new Uint8Array(1 << 20);
/** Number of discarded ranges to remember; beyond that, holes are reported as mapped. */
const MOST_HOLES = 1 << 16;

export interface FileBackendOptions {
  readonly path: string;
  /** Default 512. */
  readonly blockBytes?: number;
  /** Creates the file, or extends it with a hole. Without it the file must exist. */
  readonly sizeBytes?: number;
  /** Default false. */
  readonly readOnly?: boolean;
  /** Replaces the system's function; `undefined` to write zeroes. */
  readonly punchHole?: HolePuncher | undefined;
  /** Replaces the serial number that is kept with the file. */
  readonly serial?: string;
  /** Replaces the system's attributes; `undefined` to keep the serial number in a file. */
  readonly attributes?: FileAttributes | undefined;
  /**
   * Receives a sentence about a copy, which gets a new serial number, and about one that cannot be
   * kept.
   */
  readonly onNote?: (note: string) => void;
}

export class FileBackend implements BlockBackend {
  /** Blocks that are known to take no space. */
  private readonly holes = new RangeSet();
  private closing: Promise<void> | undefined;
  /** Set after a failed flush: the system may have dropped data that it could not write. */
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
   * @throws RangeError as `geometryOf`, and for a `sizeBytes` smaller than the file
   * @throws the system's error if the file cannot be opened or extended
   * @throws Error if the serial number cannot be read
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

  /** Flushes. After one failure it fails for ever: no later flush can tell what was lost. */
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

  /** Punches a hole; false if the file system has none, which is then remembered. */
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

  /** Runs `work`, and converts an error of the system to a failure of blocks. */
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

/**
 * Makes bytes of a file read as zeroes, and frees the whole blocks of the file system among them.
 */
type HolePuncher = (fd: number, offset: number, bytes: number) => Promise<void>;

/**
 * The hole puncher of fs-native-extensions, which is an optional dependency. Without it, or without
 * its addon for this system, discarded blocks are zeroes that take space.
 */
async function systemPuncher(): Promise<HolePuncher | undefined> {
  try {
    const { trim } = await import('fs-native-extensions');
    return trim;
  } catch {
    return undefined;
  }
}

/** Blocks from `first` up to, not including, `end`. */
interface Range {
  readonly first: bigint;
  readonly end: bigint;
}

/** A set of block numbers, kept as ranges: the blocks that take no space. */
class RangeSet {
  /** Ascending; neither overlapping nor touching. */
  private ranges: Range[] = [];

  /** Number of separate ranges, to limit memory. */
  get rangeCount(): number {
    return this.ranges.length;
  }

  add(first: bigint, count: bigint): void {
    if (count <= 0n) return;
    let end = first + count;
    const from = this.firstThatIsNot((range) => range.end < first);
    let to = from;
    for (; to < this.ranges.length && this.ranges[to]!.first <= end; to++) {
      const touched = this.ranges[to]!;
      if (touched.first < first) first = touched.first;
      if (touched.end > end) end = touched.end;
    }
    this.ranges.splice(from, to - from, { first, end });
  }

  remove(first: bigint, count: bigint): void {
    if (count <= 0n || this.ranges.length === 0) return;
    const end = first + count;
    const from = this.firstThatIsNot((range) => range.end <= first);
    const left: Range[] = [];
    let to = from;
    for (; to < this.ranges.length && this.ranges[to]!.first < end; to++) {
      const cut = this.ranges[to]!;
      if (cut.first < first) left.push({ first: cut.first, end: first });
      if (cut.end > end) left.push({ first: end, end: cut.end });
    }
    if (to > from) this.ranges.splice(from, to - from, ...left);
  }

  /**
   * True if the block is in the set, and the number of blocks for which that holds: at most up to
   * `end`.
   */
  runAt(at: bigint, end: bigint): { readonly isIn: boolean; readonly blocks: bigint } {
    const next = this.ranges[this.firstThatIsNot((range) => range.end <= at)];
    const isIn = next !== undefined && next.first <= at;
    const until = next === undefined ? end : isIn ? next.end : next.first;
    return { isIn, blocks: (until < end ? until : end) - at };
  }

  /** Index of the first range that is not before, by bisection. */
  private firstThatIsNot(isBefore: (range: Range) => boolean): number {
    let low = 0;
    let high = this.ranges.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (isBefore(this.ranges[middle]!)) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}
