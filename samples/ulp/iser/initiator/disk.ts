/** A logical unit of a target as a disk: blocks are read and written by promises. */
import { IscsiError } from '../session/initiator/index.js';
import {
  blockLimitsPage,
  capacity10Data,
  capacity16Data,
  emitLun,
  inquiryData,
  MAX_LUN,
  modeHeader6,
  SENSE_KEY,
  TASK_FUNCTION,
} from '../wire/index.js';
import * as commands from './commands.js';
import { type Answer, ReconnectingSession } from './reconnecting-session.js';
import { integer, invalid, type Opened, type PortalOptions, prepare } from './options.js';

export interface OpenDiskOptions extends PortalOptions {
  /** The target's iSCSI name. */
  readonly target: string;
  /** 0 to 16383, default 0. */
  readonly lun?: number;
  /** Time after which an unanswered command is aborted. Default 30000; Infinity for never. */
  readonly commandTimeoutMs?: number;
}

export interface IoOptions {
  /** Aborts the command; it may have been executed, in part. */
  readonly signal?: AbortSignal | undefined;
}

export interface DiskWriteOptions extends IoOptions {
  /** Force unit access: durable when the promise resolves. */
  readonly fua?: boolean;
}

/** The disk's description of itself. */
export interface DiskDescription {
  readonly vendor: string;
  readonly product: string;
  readonly revision: string;
  readonly blockBytes: number;
  readonly blockCount: bigint;
  readonly isReadOnly: boolean;
  /** True if writes support force unit access; otherwise a flush follows. */
  readonly hasFua: boolean;
  /** True if blocks can be unmapped. */
  readonly isThin: boolean;
  /** Bytes of the longest transfer of one command. */
  readonly maxTransferBytes: number;
  /** Blocks of the longest UNMAP and COMPARE AND WRITE; 0 if it is not supported. */
  readonly maxUnmapBlocks: number;
  readonly maxCompareBlocks: number;
}

/** Bytes of one command if the disk states no limit. */
const MAX_TRANSFER_BYTES = 1 << 20;
const BLOCK_LIMITS_PAGE = 0xb0;
const SUPPORTED_PAGES = 0x00;

/**
 * Opens a disk: connects, logs in, and reads the disk's description.
 * @throws IscsiError, as a rejection; DatError if no adapter can be opened
 */
export async function openDisk(options: OpenDiskOptions): Promise<Disk> {
  const { target, lun = 0, commandTimeoutMs: timeoutMs = 30_000, signal } = options;
  const lunBytes = emitLun(integer('lun', lun, 0, MAX_LUN));
  const opened = await prepare(options, 'Normal', target);
  const session = new ReconnectingSession(opened.options);
  try {
    await session.start(signal);
    return await Disk.describe(session, lunBytes, timeoutMs, opened);
  } catch (error) {
    await session.close();
    await opened.free();
    throw error;
  }
}

export class Disk {
  /** @internal */
  static async describe(
    session: ReconnectingSession,
    lun: Uint8Array,
    timeoutMs: number,
    { free, maxTransferBytes }: Opened,
  ): Promise<Disk> {
    const run = async (command: commands.DiskCommand): Promise<Answer> => {
      const answer = await session.execute(command);
      commands.checkStatus(command, answer);
      return answer;
    };
    const names = await readNames(run, lun, timeoutMs);
    await run(commands.ready(lun, { timeoutMs }));
    const size = await readCapacity(run, lun, timeoutMs);
    const limits = await readLimits(run, lun, size.blockBytes, maxTransferBytes, timeoutMs);
    const modes = await readModes(run, lun, timeoutMs);
    const description: DiskDescription = { ...names, ...size, ...limits, ...modes };
    return new Disk(session, lun, timeoutMs, free, description);
  }

  readonly blockBytes: number;
  readonly blockCount: bigint;
  readonly isReadOnly: boolean;
  private closing: Promise<void> | undefined;

  private constructor(
    private readonly session: ReconnectingSession,
    private readonly lun: Uint8Array,
    private readonly timeoutMs: number,
    private readonly free: Opened['free'],
    readonly description: DiskDescription,
  ) {
    this.blockBytes = description.blockBytes;
    this.blockCount = description.blockCount;
    this.isReadOnly = description.isReadOnly;
  }

  /** Size of the whole disk in bytes. */
  get capacity(): bigint {
    return this.blockCount * BigInt(this.blockBytes);
  }

  /**
   * Allocates memory that is transferred without a copy on this side. It belongs to the disk:
   * `close` frees it.
   */
  allocate(lengthBytes: number): Uint8Array {
    return this.session.allocate(integer('lengthBytes', lengthBytes, 1, 2 ** 32 - 1));
  }

  /**
   * Fills memory with blocks.
   * @param lba of the first block
   * @param into a multiple of `blockBytes`; undefined content after an error
   * @throws IscsiError, as a rejection
   */
  read(lba: bigint | number, into: Uint8Array, { signal }: IoOptions = {}): Promise<void> {
    const { lun, timeoutMs } = this;
    return this.transfer(lba, into, (at, blocks, part) =>
      commands.read(lun, at, blocks, part, { signal, timeoutMs }),
    );
  }

  /**
   * Writes blocks; durable after `flush`, or with `fua`.
   * @param from a multiple of `blockBytes`, which must not change until the promise settles
   * @throws IscsiError, as a rejection
   */
  write(
    lba: bigint | number,
    from: Uint8Array,
    { signal, fua = false }: DiskWriteOptions = {},
  ): Promise<void> {
    const { lun, timeoutMs } = this;
    const isForced = fua && this.description.hasFua;
    const written = this.transfer(lba, from, (at, blocks, part) =>
      commands.write(lun, at, blocks, part, isForced, { signal, timeoutMs }),
    );
    return fua && !isForced ? written.then(() => this.flush({ signal })) : written;
  }

  /**
   * Makes everything durable that was written before this call. @throws IscsiError, as a rejection
   */
  async flush({ signal }: IoOptions = {}): Promise<void> {
    await this.run(commands.flush(this.lun, { signal, timeoutMs: this.timeoutMs }));
  }

  /**
   * Allows the disk to forget the blocks. @throws IscsiError, as a rejection;
   * ISCSI_INVALID_PARAMETER if the disk does not support it
   */
  async unmap(lba: bigint | number, blocks: bigint, { signal }: IoOptions = {}): Promise<void> {
    const { maxUnmapBlocks } = this.description;
    if (maxUnmapBlocks === 0) throw invalid('disk', 'not thin', 'one that has UNMAP');
    const first = this.checkExtent(BigInt(lba), blocks);
    const most = BigInt(maxUnmapBlocks);
    for (let done = 0n; done < blocks; done += most) {
      const part = Number(blocks - done < most ? blocks - done : most);
      const { lun, timeoutMs } = this;
      await this.run(commands.discard(lun, first + done, part, { signal, timeoutMs }));
    }
  }

  /**
   * Writes blocks if they have the expected content, atomically.
   * @returns false if they have not
   * @throws IscsiError, as a rejection: ISCSI_OUTCOME_UNKNOWN if the session was lost before the
   * answer, because the command is not sent twice
   */
  async compareAndWrite(
    lba: bigint | number,
    expected: Uint8Array,
    replacement: Uint8Array,
    { signal }: IoOptions = {},
  ): Promise<boolean> {
    const { maxCompareBlocks } = this.description;
    const blocks = this.blocksOf(expected);
    if (replacement.length !== expected.length) {
      throw invalid('bytes of replacement', String(replacement.length), String(expected.length));
    }
    integer('blocks to compare', blocks, 1, maxCompareBlocks);
    const at = this.checkExtent(BigInt(lba), BigInt(blocks));
    const both = new Uint8Array(2 * expected.length);
    both.set(expected);
    both.set(replacement, expected.length);
    const { lun, timeoutMs } = this;
    try {
      await this.run(commands.compareWrite(lun, at, blocks, both, { signal, timeoutMs }));
      return true;
    } catch (error) {
      if (error instanceof IscsiError && error.sense?.key === SENSE_KEY.MISCOMPARE) return false;
      throw error;
    }
  }

  /** Aborts all commands of all initiators on this disk. @throws IscsiError, as a rejection */
  reset(): Promise<void> {
    return this.session.manage(TASK_FUNCTION.LOGICAL_UNIT_RESET, this.lun);
  }

  /** Waits for commands in flight, logs out and closes. A second call returns the same promise. */
  close(): Promise<void> {
    this.closing ??= this.session.close().then(() => this.free());
    return this.closing;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  /** Splits a transfer into commands, and sends them all at a time. */
  private async transfer(
    lba: bigint | number,
    bytes: Uint8Array,
    make: (lba: bigint, blocks: number, part: Uint8Array) => commands.DiskCommand,
  ): Promise<void> {
    const blocks = this.blocksOf(bytes);
    const first = this.checkExtent(BigInt(lba), BigInt(blocks));
    const { maxTransferBytes } = this.description;
    if (bytes.length === 0) return;
    if (bytes.length <= maxTransferBytes) return this.move(make(first, blocks, bytes));
    const parts: Promise<void>[] = [];
    for (let at = 0; at < bytes.length; at += maxTransferBytes) {
      const part = bytes.subarray(at, Math.min(bytes.length, at + maxTransferBytes));
      const partLba = first + BigInt(at / this.blockBytes);
      parts.push(this.move(make(partLba, part.length / this.blockBytes, part)));
    }
    return allSettled(parts);
  }

  private async move(command: commands.DiskCommand): Promise<void> {
    const { transferredBytes } = await this.run(command);
    const wanted = (command.dataIn ?? command.dataOut)!.length;
    if (transferredBytes === wanted) return;
    const message = `${command.what()}: GOOD, with ${transferredBytes} bytes of ${wanted}`;
    throw new IscsiError('ISCSI_PROTOCOL', message);
  }

  private async run(command: commands.DiskCommand): Promise<Answer> {
    const answer = await this.session.execute(command);
    commands.checkStatus(command, answer);
    return answer;
  }

  private blocksOf(bytes: Uint8Array): number {
    const blocks = bytes.length / this.blockBytes;
    if (Number.isInteger(blocks)) return blocks;
    throw invalid('length in bytes', String(bytes.length), `a multiple of ${this.blockBytes}`);
  }

  private checkExtent(lba: bigint, blocks: bigint): bigint {
    if (lba >= 0n && blocks >= 0n && lba + blocks <= this.blockCount) return lba;
    throw invalid('extent', `${blocks} blocks from LBA ${lba}`, `within ${this.blockCount} blocks`);
  }
}

/** Waits for all parts, so that no memory is in use when the first error is thrown. */
async function allSettled(parts: readonly Promise<void>[]): Promise<void> {
  const results = await Promise.allSettled(parts);
  for (const result of results) if (result.status === 'rejected') throw result.reason;
}

type Run = (command: commands.DiskCommand) => Promise<Answer>;

async function readNames(
  run: Run,
  lun: Uint8Array,
  timeoutMs: number,
): Promise<Pick<DiskDescription, 'vendor' | 'product' | 'revision'>> {
  const data = new Uint8Array(inquiryData.lengthBytes);
  await run(commands.identify(lun, undefined, data, { timeoutMs }));
  const { peripheralQualifier, peripheralDeviceType, vendor, product, revision } =
    inquiryData.view(data);
  if (peripheralQualifier !== 0 || peripheralDeviceType !== 0) {
    const type = peripheralDeviceType.toString(16);
    throw invalid('logical unit', `qualifier ${peripheralQualifier}, type 0x${type}`, 'a disk');
  }
  return { vendor, product, revision };
}

async function readCapacity(
  run: Run,
  lun: Uint8Array,
  timeoutMs: number,
): Promise<Pick<DiskDescription, 'blockBytes' | 'blockCount' | 'isThin'>> {
  try {
    const data = new Uint8Array(capacity16Data.lengthBytes);
    await run(commands.capacity(lun, 16, data, { timeoutMs }));
    const { lastLba, blockBytes, provisioned } = capacity16Data.view(data);
    return checked({ blockBytes, blockCount: lastLba + 1n, isThin: provisioned });
  } catch (error) {
    // Disks of SBC-1 have no READ CAPACITY(16).
    if (!isIllegalRequest(error)) throw error;
    const data = new Uint8Array(capacity10Data.lengthBytes);
    await run(commands.capacity(lun, 10, data, { timeoutMs }));
    const { lastLba, blockBytes } = capacity10Data.view(data);
    return checked({ blockBytes, blockCount: BigInt(lastLba) + 1n, isThin: false });
  }
}

function checked<T extends { readonly blockBytes: number }>(size: T): T {
  integer('block size of the disk', size.blockBytes, 512, 65_536);
  return size;
}

async function readLimits(
  run: Run,
  lun: Uint8Array,
  blockBytes: number,
  maxTransferBytes: number,
  timeoutMs: number,
): Promise<Pick<DiskDescription, 'maxTransferBytes' | 'maxUnmapBlocks' | 'maxCompareBlocks'>> {
  const data = new Uint8Array(blockLimitsPage.lengthBytes);
  const pages = new Uint8Array(255);
  await run(commands.identify(lun, SUPPORTED_PAGES, pages, { timeoutMs }));
  const count = (pages[2]! << 8) | pages[3]!;
  if (pages.subarray(4, 4 + count).includes(BLOCK_LIMITS_PAGE)) {
    await run(commands.identify(lun, BLOCK_LIMITS_PAGE, data, { timeoutMs }));
  }
  const page = blockLimitsPage.view(data);
  const stated = page.maxTransferBlocks * blockBytes || Infinity;
  const most = Math.min(stated, maxTransferBytes, MAX_TRANSFER_BYTES);
  return {
    maxTransferBytes: Math.max(blockBytes, most - (most % blockBytes)),
    maxUnmapBlocks: page.maxUnmapBlocks,
    maxCompareBlocks: page.maxCompareAndWriteBlocks,
  };
}

async function readModes(
  run: Run,
  lun: Uint8Array,
  timeoutMs: number,
): Promise<Pick<DiskDescription, 'isReadOnly' | 'hasFua'>> {
  const data = new Uint8Array(192);
  try {
    await run(commands.modes(lun, data, { timeoutMs }));
    const { writeProtected, dpoFua } = modeHeader6.view(data);
    return { isReadOnly: writeProtected, hasFua: dpoFua };
  } catch (error) {
    if (isIllegalRequest(error)) return { isReadOnly: false, hasFua: false };
    throw error;
  }
}

function isIllegalRequest(error: unknown): boolean {
  return error instanceof IscsiError && error.sense?.key === SENSE_KEY.ILLEGAL_REQUEST;
}
