/**
 * The receiver's file: `NAME.part` until every byte is stored and verified, then `NAME`. A transfer
 * that was interrupted continues at the end of the part.
 */
import { createHash, type Hash } from 'node:crypto';
import { constants, createReadStream, type Stats } from 'node:fs';
import {
  access,
  type FileHandle,
  link,
  lstat,
  mkdir,
  open,
  rename,
  rm,
  stat,
} from 'node:fs/promises';
import { basename, join } from 'node:path';
import { TransferFailure } from './failure.js';

/** Flags for the part: bytes are appended, and symbolic links are not followed. */
const PART_FLAGS =
  constants.O_RDWR | constants.O_CREAT | constants.O_APPEND | (constants.O_NOFOLLOW ?? 0);

export interface PartialFileOptions {
  readonly directory: string;
  /** True to replace an existing file of that name. */
  readonly force: boolean;
  /** Aborted to interrupt. */
  readonly signal: AbortSignal;
}

export class PartialFile {
  private constructor(
    readonly path: string,
    private readonly partPath: string,
    private readonly replaces: boolean,
    private readonly file: FileHandle,
    private hash: Hash,
    /** Bytes stored and hashed. */
    public lengthBytes: number,
  ) {}

  /**
   * Opens or continues the part of a file in a directory. A part longer than the file is dropped.
   * @param offer the sender's name for the file, of which only the last component is used, and size
   * @throws TransferFailure for an invalid name, a name that is taken, and a part that is not a
   * file of this user
   */
  static async open(
    { name, sizeBytes }: { readonly name: string; readonly sizeBytes: number },
    { directory, force, signal }: PartialFileOptions,
  ): Promise<PartialFile> {
    const path = join(directory, fileName(name));
    await refuseTaken(path, force);
    const partPath = `${path}.part`;
    const file = await openPart(partPath);
    try {
      const { size } = await file.stat();
      if (size > sizeBytes) await file.truncate(0);
      const lengthBytes = size > sizeBytes ? 0 : size;
      const hash = await hashOfPrefix(file, lengthBytes, signal);
      return new PartialFile(path, partPath, force, file, hash, lengthBytes);
    } catch (error) {
      await file.close();
      throw error;
    }
  }

  /** SHA-256 of the stored bytes. */
  digest(): Uint8Array {
    return this.hash.copy().digest();
  }

  /** Empties the part. */
  async restart(): Promise<void> {
    await this.file.truncate(0);
    this.hash = createHash('sha256');
    this.lengthBytes = 0;
  }

  /** Stores the next bytes; they must not change until the promise resolves. */
  async append(bytes: Uint8Array): Promise<void> {
    const stored = this.store(bytes);
    // The hash runs while the file system writes.
    this.hash.update(bytes);
    await stored;
    this.lengthBytes += bytes.length;
  }

  private async store(bytes: Uint8Array): Promise<void> {
    for (let at = 0; at < bytes.length;) {
      const { bytesWritten } = await this.file
        .write(bytes, at, bytes.length - at)
        .catch((error: unknown) => {
          // The system's error does not name the file.
          throw Object.assign(error as Error, { path: this.partPath });
        });
      at += bytesWritten;
    }
  }

  /**
   * Renames the complete file. @throws TransferFailure if another file has taken the name
   * meanwhile; the part stays
   */
  async finish(): Promise<void> {
    await this.file.close();
    if (this.replaces) await rename(this.partPath, this.path);
    else await moveToFreeName(this.partPath, this.path);
  }

  /** Deletes the part: its content is wrong. */
  async discard(): Promise<void> {
    await this.file.close();
    await rm(this.partPath, { force: true });
  }

  /** Keeps the part for a later run, unless it is empty. */
  async keep(): Promise<void> {
    await this.file.close();
    if ((await stat(this.partPath)).size === 0) await rm(this.partPath);
  }
}

/**
 * Creates the directory if only its last component is missing. @throws an error of the file system
 * if nothing can be stored in it
 */
export async function prepareDirectory(directory: string): Promise<void> {
  await mkdir(directory).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'EEXIST') throw error;
  });
  if (!(await stat(directory)).isDirectory()) {
    throw new TransferFailure(`${JSON.stringify(directory)} is not a directory`);
  }
  await access(directory, constants.W_OK | constants.X_OK);
}

/** The last component of a path that a peer has sent. */
function fileName(name: string): string {
  const last = basename(name);
  if (last !== '' && last !== '.' && last !== '..' && !last.includes('\0')) return last;
  throw new TransferFailure(
    `The sender calls its file ${JSON.stringify(name)}: no name for a file`,
  );
}

/** A running SHA-256 of the first `lengthBytes` of an open file. */
export async function hashOfPrefix(
  file: FileHandle,
  lengthBytes: number,
  signal: AbortSignal,
): Promise<Hash> {
  const hash = createHash('sha256');
  if (lengthBytes === 0) return hash;
  const prefix = { fd: file, autoClose: false, start: 0, end: lengthBytes - 1, signal };
  for await (const piece of createReadStream('', prefix)) hash.update(piece as Buffer);
  return hash;
}

/** Refuses a name that is taken: also by a link, whatever its target. */
async function refuseTaken(path: string, force: boolean): Promise<void> {
  const existing = await lstat(path).catch(() => undefined);
  if (existing?.isDirectory()) {
    throw new TransferFailure(`${JSON.stringify(path)} is a directory, not a file`);
  }
  if (existing !== undefined && !force) throw takenName(path);
}

function takenName(path: string): TransferFailure {
  return new TransferFailure(
    `There is a file ${JSON.stringify(path)} already; --force at the receiver replaces it`,
  );
}

/**
 * Opens or creates a part. Where others may write to the directory, one may have planted it: a link
 * to a file that we would change, or a file whose owner could change it afterwards.
 */
async function openPart(partPath: string): Promise<FileHandle> {
  const file = await open(partPath, PART_FLAGS).catch((error: NodeJS.ErrnoException) => {
    throw error.code === 'ELOOP' ? strangePart(partPath, 'a symbolic link') : error;
  });
  const strange = strangenessOf(await file.stat());
  if (strange === undefined) return file;
  await file.close();
  throw strangePart(partPath, strange);
}

function strangenessOf(part: Stats): string | undefined {
  if (!part.isFile()) return 'no regular file';
  if (part.nlink !== 1) return 'a file of several names';
  const user = process.geteuid?.();
  return user === undefined || part.uid === user ? undefined : 'a file of another user';
}

function strangePart(partPath: string, what: string): TransferFailure {
  return new TransferFailure(`${JSON.stringify(partPath)} is ${what}: it is not written to`);
}

/** Renames a file without replacing one that has taken the name meanwhile. */
async function moveToFreeName(from: string, to: string): Promise<void> {
  try {
    await link(from, to);
  } catch (error) {
    const { code = '' } = error as NodeJS.ErrnoException;
    if (code === 'EEXIST') throw takenName(to);
    // File systems without links.
    if (!['EPERM', 'ENOTSUP', 'ENOSYS'].includes(code)) throw error;
    await refuseTaken(to, false);
    await rename(from, to);
    return;
  }
  await rm(from);
}
