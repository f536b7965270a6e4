/**
 * A pcapng file that packets of one or several devices go to. Blocks are put together in a buffer
 * and written once in a turn of the event loop, so that a reader of the growing file is not far
 * behind and a packet costs no system call.
 */
import { closeSync, constants, fstatSync, ftruncateSync, writeSync } from 'node:fs';
import { type Block, CaptureReader } from './capture-reader.js';
import {
  BlockType,
  type Direction,
  goesOn,
  interfaceDescription,
  PACKET_DATA,
  packetBlock,
  packetBlockBytes,
  sectionHeader,
} from './pcapng.js';
import { openPrivate } from './private-file.js';

const BUFFER_BYTES = 1 << 18;

/** By device and inode, so by whatever path: several devices of a process may share a file. */
const open = new Map<string, CaptureFile>();

export class CaptureFile {
  private readonly buffer = new Uint8Array(BUFFER_BYTES);
  private readonly view = new DataView(this.buffer.buffer);
  private readonly onExit = (): void => this.flush();
  private used = 0;
  private interfaces = 0;
  private holders = 0;
  private flushing: NodeJS.Immediate | undefined;

  private constructor(
    private readonly fd: number,
    private readonly key: string,
    path: string,
  ) {
    const status = fstatSync(fd);
    if (status.isFile() && status.size > 0) this.goOn(path, status.size);
    else this.append(sectionHeader('dapl'));
    process.on('exit', this.onExit);
  }

  /**
   * The file at a path: made if it is not there; a capture that is there goes on. Behind a writer
   * that was killed, the part of a block that it has left is cut off.
   * @throws Error as `openPrivate`; for a file of another kind, which is left as it is
   */
  static hold(path: string): CaptureFile {
    const fd = openPrivate(path, constants.O_APPEND);
    let file: CaptureFile | undefined;
    try {
      const { dev, ino } = fstatSync(fd);
      const key = `${dev}:${ino}`;
      file = open.get(key) ?? new CaptureFile(fd, key, path);
      open.set(key, file);
      file.holders++;
      return file;
    } finally {
      if (file?.fd !== fd) closeSync(fd);
    }
  }

  /** @returns the number of the interface */
  addInterface(name: string): number {
    this.append(interfaceDescription(name));
    return this.interfaces++;
  }

  /** Room for a frame, valid until `commit`. @param comment as there */
  reserve(length: number, comment = ''): Uint8Array {
    if (this.used + packetBlockBytes(length, comment) > BUFFER_BYTES) this.flush();
    const start = this.used + PACKET_DATA;
    return this.buffer.subarray(start, start + length);
  }

  /**
   * The frame that has been put into the room is a packet now.
   * @param comment on it, for people; '' for none
   */
  commit(
    length: number,
    interfaceId: number,
    timeUs: number,
    direction: Direction,
    comment = '',
  ): void {
    const { view, used } = this;
    this.used = packetBlock(view, used, length, interfaceId, timeUs, direction, comment);
    this.flushing ??= setImmediate(() => this.flush());
  }

  /** The last holder's release writes the rest and closes the file. */
  release(): void {
    if (--this.holders > 0) return;
    open.delete(this.key);
    this.flush();
    process.off('exit', this.onExit);
    closeSync(this.fd);
  }

  private goOn(path: string, sizeBytes: number): void {
    const { interfaces, endBytes } = resumeOf(path, sizeBytes, BUFFER_BYTES);
    if (endBytes < sizeBytes) ftruncateSync(this.fd, endBytes);
    this.interfaces = interfaces;
  }

  private append(bytes: Uint8Array): void {
    if (this.used + bytes.length > BUFFER_BYTES) this.flush();
    this.buffer.set(bytes, this.used);
    this.used += bytes.length;
  }

  private flush(): void {
    if (this.flushing !== undefined) clearImmediate(this.flushing);
    this.flushing = undefined;
    const end = this.used;
    this.used = 0;
    for (let at = 0; at < end;) at += writeSync(this.fd, this.buffer, at, end - at);
  }
}

/** Position at which an existing capture is continued. */
interface Resume {
  /** Interfaces of the file's last section: the next one has this number. */
  readonly interfaces: number;
  /** Bytes of whole blocks: a writer that was killed may have left a part of one behind them. */
  readonly endBytes: number;
}

/**
 * Reads a file through, to append to it.
 * @param sizeBytes of the file, which is not empty
 * @param mostPartBytes of a block that is there in part; more than that is no end of a capture
 * @throws Error for a file of another kind, or one that is damaged: nothing is cut from it
 */
function resumeOf(path: string, sizeBytes: number, mostPartBytes: number): Resume {
  const reader = new CaptureReader(path);
  try {
    let interfaces: number | undefined;
    for (let block = reader.next(); block !== undefined; block = reader.next()) {
      interfaces = interfacesAfter(block, interfaces);
      if (interfaces === undefined) throw refusal(path, 'it is no pcapng file that can go on');
    }
    const endBytes = reader.offset;
    if (interfaces === undefined) throw refusal(path, 'it is no pcapng file');
    if (sizeBytes - endBytes > mostPartBytes) {
      throw refusal(path, `it is damaged ${endBytes} bytes from its beginning`);
    }
    return { interfaces, endBytes };
  } finally {
    reader.close();
  }
}

/** @returns undefined for what stands in no section of the kind that is written here */
function interfacesAfter({ type, bytes }: Block, before: number | undefined): number | undefined {
  if (type === BlockType.SECTION_HEADER) return goesOn(bytes) ? 0 : undefined;
  if (before === undefined) return undefined;
  return type === BlockType.INTERFACE_DESCRIPTION ? before + 1 : before;
}

function refusal(path: string, why: string): Error {
  return new Error(`${path} is there and cannot be appended to: ${why}; move it away`);
}
