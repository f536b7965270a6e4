/** The actions of `dapl iser-initiator` on a disk: list, copy, compare. */
import { type FileHandle, open } from 'node:fs/promises';
import { Presets, SingleBar } from 'cli-progress';
import { type Ia, openIa } from 'dapl';
import { verbs } from 'dapl/providers/verbs';
import { discover, type Disk, listLuns, openDisk, type PortalOptions } from 'dapl/ulp/iser';

/** Progress of a copy: a bar on a terminal; otherwise nothing is printed. */
interface Progress {
  add(bytes: number): void;
  stop(): void;
}

const MEBI = 2 ** 20;

function startProgress(what: string, totalBytes: number, out: NodeJS.WriteStream): Progress {
  if (!out.isTTY) return { add: () => undefined, stop: () => undefined };
  const bar = new SingleBar(
    {
      stream: out,
      format: `${what} {bar} {percentage} % | {value} of {total} MiB | ETA {eta_formatted}`,
      barsize: 24,
      hideCursor: true,
    },
    Presets.shades_classic,
  );
  let bytes = 0;
  bar.start(Math.ceil(totalBytes / MEBI), 0);
  return {
    add: (more) => {
      bytes += more;
      bar.update(Math.floor(bytes / MEBI));
    },
    stop: () => bar.stop(),
  };
}

export interface InitiatorSettings {
  readonly portal: PortalOptions;
  /** An RDMA device or interface; default: softroce. */
  readonly device?: string;
  readonly print: (line: string) => void;
}

export interface DiskSettings extends InitiatorSettings {
  readonly target: string;
  readonly lun: number;
  readonly file: string;
  /** The first block. */
  readonly lba: bigint;
  /** Default: to the end of the disk, or of the file. */
  readonly blocks?: bigint;
}

/** Bytes of one command. Several commands are in flight at a time. */
const CHUNK_BYTES = 1 << 20;
const DEPTH = 8;

/** Lists targets, their portals, and the disks of those that admit this initiator. */
export async function list(settings: InitiatorSettings): Promise<void> {
  const { print } = settings;
  await withAdapter(settings, async (portal) => {
    for (const { name, portals } of await discover(portal)) {
      const where = portals.map(({ address, port }) => `${address} port ${port}`).join(', ');
      print(`${name}${where === '' ? '' : `  at ${where}`}`);
      for (const lun of await listLuns({ ...portal, target: name })) {
        const disk = await openDisk({ ...portal, target: name, lun });
        print(`  LUN ${lun}: ${describe(disk)}`);
        await disk.close();
      }
    }
  });
}

/** Copies the disk, or a part of it, into a file. */
export async function read(settings: DiskSettings): Promise<void> {
  await withDisk(settings, async (disk) => {
    const blocks = settings.blocks ?? disk.blockCount - settings.lba;
    await withFile(settings.file, 'w', async (file) => {
      await copy('read', disk, settings.lba, bytesOf(disk, blocks), async (lba, buffer, at) => {
        await disk.read(lba, buffer);
        await writeAll(file, buffer, at);
      });
      await file.sync();
    });
    settings.print(`read ${blocks} blocks from LBA ${settings.lba}`);
  });
}

/** Copies a file to the disk. It is durable when this says so. */
export async function write(settings: DiskSettings): Promise<void> {
  await withDisk(settings, async (disk) => {
    await withFile(settings.file, 'r', async (file) => {
      const blocks = await blocksOf(disk, file, settings);
      await copy('write', disk, settings.lba, bytesOf(disk, blocks), async (lba, buffer, at) => {
        await readAll(file, buffer, at);
        await disk.write(lba, buffer);
      });
      await disk.flush();
      settings.print(`wrote ${blocks} blocks from LBA ${settings.lba}, and flushed them`);
    });
  });
}

/**
 * Compares a file with the disk.
 * @throws Error with the first block that differs
 */
export async function verify(settings: DiskSettings): Promise<void> {
  await withDisk(settings, async (disk) => {
    await withFile(settings.file, 'r', async (file) => {
      const blocks = await blocksOf(disk, file, settings);
      let first: bigint | undefined;
      await copy('verify', disk, settings.lba, bytesOf(disk, blocks), async (lba, buffer, at) => {
        const expected = new Uint8Array(buffer.length);
        await Promise.all([readAll(file, expected, at), disk.read(lba, buffer)]);
        const differing = firstDifference(expected, buffer, disk.blockBytes);
        if (differing === undefined) return;
        const block = lba + BigInt(differing);
        if (first === undefined || block < first) first = block;
      });
      if (first !== undefined) throw new Error(`LBA ${first} differs from ${settings.file}`);
      settings.print(`${blocks} blocks from LBA ${settings.lba} match ${settings.file}`);
    });
  });
}

function describe({ description, capacity }: Disk): string {
  const { vendor, product, blockBytes, blockCount, isReadOnly, isThin } = description;
  const kinds = [isReadOnly ? 'read-only' : '', isThin ? 'thin' : ''].filter((kind) => kind !== '');
  const size = `${blockCount} blocks of ${blockBytes} bytes (${Number(capacity / 2n ** 20n)} MiB)`;
  return [`${vendor} ${product}, ${size}`, ...kinds].join(', ');
}

/** Calls `move` for each chunk, several at a time, each with a buffer of its own. */
async function copy(
  what: string,
  disk: Disk,
  lba: bigint,
  totalBytes: number,
  move: (lba: bigint, buffer: Uint8Array, offsetBytes: number) => Promise<void>,
): Promise<void> {
  const progress = startProgress(what, totalBytes, process.stderr);
  const chunkBytes = Math.min(disk.description.maxTransferBytes, CHUNK_BYTES);
  let next = 0;
  const lane = async (): Promise<void> => {
    const buffer = disk.allocate(chunkBytes);
    while (next < totalBytes) {
      const at = next;
      next += chunkBytes;
      const part = buffer.subarray(0, Math.min(chunkBytes, totalBytes - at));
      await move(lba + BigInt(at / disk.blockBytes), part, at);
      progress.add(part.length);
    }
  };
  try {
    const lanes = Math.min(DEPTH, Math.ceil(totalBytes / chunkBytes));
    await Promise.all(Array.from({ length: lanes }, lane));
  } finally {
    progress.stop();
  }
}

async function withAdapter(
  { portal, device }: InitiatorSettings,
  work: (portal: PortalOptions) => Promise<void>,
): Promise<void> {
  if (device === undefined) return work(portal);
  const ia: Ia = await openIa(verbs({ device }));
  try {
    await work({ ...portal, ia });
  } finally {
    await ia.close();
  }
}

async function withDisk(
  settings: DiskSettings,
  work: (disk: Disk) => Promise<void>,
): Promise<void> {
  const { target, lun } = settings;
  await withAdapter(settings, async (portal) => {
    const notice = (what: string): void => void process.stderr.write(`${what}\n`);
    const disk = await openDisk({ ...portal, target, lun, notice });
    try {
      await work(disk);
    } finally {
      await disk.close();
    }
  });
}

async function withFile(
  path: string,
  flags: string,
  work: (file: FileHandle) => Promise<void>,
): Promise<void> {
  const file = await open(path, flags);
  try {
    await work(file);
  } finally {
    await file.close();
  }
}

/**
 * The number of blocks to copy.
 * @throws Error if the file does not fit, or is no whole number of blocks
 */
async function blocksOf(
  disk: Disk,
  file: FileHandle,
  { blocks, lba, file: path }: DiskSettings,
): Promise<bigint> {
  const { size } = await file.stat();
  if (size % disk.blockBytes !== 0) {
    throw new Error(`${path} has ${size} bytes, must have a multiple of ${disk.blockBytes}`);
  }
  const inFile = BigInt(size / disk.blockBytes);
  const wanted = blocks ?? inFile;
  if (wanted > inFile) throw new Error(`${path} has ${inFile} blocks, but ${wanted} are requested`);
  if (lba + wanted > disk.blockCount) {
    const room = `the disk has ${disk.blockCount}`;
    throw new Error(`${wanted} blocks from LBA ${lba} do not fit: ${room}`);
  }
  return wanted;
}

function bytesOf(disk: Disk, blocks: bigint): number {
  return Number(blocks * BigInt(disk.blockBytes));
}

async function readAll(file: FileHandle, into: Uint8Array, position: number): Promise<void> {
  for (let at = 0; at < into.length;) {
    const { bytesRead } = await file.read(into, at, into.length - at, position + at);
    if (bytesRead === 0)
      throw new Error(`the file ends at byte ${position + at}: it was truncated meanwhile`);
    at += bytesRead;
  }
}

async function writeAll(file: FileHandle, from: Uint8Array, position: number): Promise<void> {
  for (let at = 0; at < from.length;) {
    const { bytesWritten } = await file.write(from, at, from.length - at, position + at);
    at += bytesWritten;
  }
}

/** The first block in which the two differ. */
function firstDifference(
  one: Uint8Array,
  other: Uint8Array,
  blockBytes: number,
): number | undefined {
  for (let at = 0; at < one.length; at += blockBytes) {
    const end = at + blockBytes;
    if (Buffer.compare(one.subarray(at, end), other.subarray(at, end)) !== 0) {
      return at / blockBytes;
    }
  }
  return undefined;
}
