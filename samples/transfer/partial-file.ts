/**
 * The receiver's file: `NAME.part` until every byte is there and verified, then `NAME`. A transfer
 * that was cut goes on where the part ends.
 */
import { createHash, type Hash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { type FileHandle, mkdir, open, rename, rm } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';

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
   */
  static async open(directory: string, name: string, sizeBytes: number): Promise<PartialFile> {
    const path = join(directory, basename(name) || 'received');
    const partPath = `${path}.part`;
    await mkdir(dirname(path), { recursive: true });
    const file = await open(partPath, 'a+');
    const { size } = await file.stat();
    if (size > sizeBytes) await file.truncate(0);
    const lengthBytes = size > sizeBytes ? 0 : size;
    const hash = await hashOfPrefix(partPath, lengthBytes);
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
      const { bytesWritten } = await this.file.write(bytes, at, bytes.length - at);
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

  /** Keeps the part for a later run. */
  async keep(): Promise<void> {
    await this.file.close();
  }
}

/** A running SHA-256 that has taken in the first `lengthBytes` of a file. */
export async function hashOfPrefix(path: string, lengthBytes: number): Promise<Hash> {
  const hash = createHash('sha256');
  if (lengthBytes === 0) return hash;
  for await (const piece of createReadStream(path, { end: lengthBytes - 1 })) {
    hash.update(piece as Buffer);
  }
  return hash;
}
