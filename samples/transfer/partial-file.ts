/**
 * The receiver's file: `NAME.part` until every byte is there and verified, then `NAME`. A transfer
 * that was cut goes on where the part ends.
 */
import { createHash, type Hash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import {
  access,
  constants,
  type FileHandle,
  mkdir,
  open,
  rename,
  rm,
  stat,
} from 'node:fs/promises';
import { basename, join } from 'node:path';
import { TransferFailure } from './failure.js';

export class PartialFile {
  private constructor(
    readonly path: string,
    private readonly partPath: string,
    private readonly file: FileHandle,
    private hash: Hash,
    /** Bytes stored and hashed. */
    public lengthBytes: number,
  ) {}

  /**
   * Opens or continues the part of a file in a directory. A part longer than the file is dropped.
   * @param name the sender's name for it; only its last component counts
   * @throws TransferFailure for a name that no file can have
   */
  static async open(
    directory: string,
    name: string,
    sizeBytes: number,
    signal: AbortSignal,
  ): Promise<PartialFile> {
    const path = join(directory, fileName(name));
    const existing = await stat(path).catch(() => undefined);
    if (existing?.isDirectory()) {
      throw new TransferFailure(`${JSON.stringify(path)} is a directory, not a file`);
    }
    const partPath = `${path}.part`;
    const file = await open(partPath, 'a+');
    const { size } = await file.stat();
    if (size > sizeBytes) await file.truncate(0);
    const lengthBytes = size > sizeBytes ? 0 : size;
    const hash = await hashOfPrefix(partPath, lengthBytes, signal);
    return new PartialFile(path, partPath, file, hash, lengthBytes);
  }

  /** SHA-256 of what is stored. */
  digest(): Uint8Array {
    return this.hash.copy().digest();
  }

  /** Starts anew. */
  async restart(): Promise<void> {
    await this.file.truncate(0);
    this.hash = createHash('sha256');
    this.lengthBytes = 0;
  }

  /** Stores the next bytes; they must not change until the promise resolves. */
  async append(bytes: Uint8Array): Promise<void> {
    const stored = this.store(bytes);
    // While the file system is at it.
    this.hash.update(bytes);
    await stored;
    this.lengthBytes += bytes.length;
  }

  private async store(bytes: Uint8Array): Promise<void> {
    for (let at = 0; at < bytes.length;) {
      const { bytesWritten } = await this.file
        .write(bytes, at, bytes.length - at)
        .catch((error: unknown) => {
          // The system does not say which file.
          throw Object.assign(error as Error, { path: this.partPath });
        });
      at += bytesWritten;
    }
  }

  /** The file is whole: it gets its name. */
  async finish(): Promise<void> {
    await this.file.close();
    await rename(this.partPath, this.path);
  }

  /** The file is wrong: nothing of it stays. */
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
 * Makes the directory if only its last component is missing.
 * @throws what the file system says when nothing can be stored in it
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

/** The last component of a path that a stranger has sent. */
function fileName(name: string): string {
  const last = basename(name);
  if (last !== '' && last !== '.' && last !== '..' && !last.includes('\0')) return last;
  throw new TransferFailure(
    `The sender calls its file ${JSON.stringify(name)}: no name for a file`,
  );
}

/** A running SHA-256 that has taken in the first `lengthBytes` of a file. */
export async function hashOfPrefix(
  path: string,
  lengthBytes: number,
  signal: AbortSignal,
): Promise<Hash> {
  const hash = createHash('sha256');
  if (lengthBytes === 0) return hash;
  for await (const piece of createReadStream(path, { end: lengthBytes - 1, signal })) {
    hash.update(piece as Buffer);
  }
  return hash;
}
