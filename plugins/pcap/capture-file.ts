/**
 * A pcapng file for packets of one or more devices. Blocks are buffered and written once per turn
 * of the event loop: the file is nearly up to date for readers, and a packet costs no system call.
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

/**
 * Open files by device and inode, whatever the path: several devices of a process may share one.
 */
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
   * The file at a path: created if missing; an existing capture is continued. If its writer was
   * killed and left a part of a block, that is cut off.
   * @throws Error as `openPrivate`; for a file of another kind, which is not changed
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
   * Turns the frame that was written into the room into a packet.
   * @param comment on the packet; '' for none
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

  /** Releases the file. The last holder's release writes the rest and closes it. */
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
  /**
   * Length of the complete blocks: a writer that was killed may have left a part of one after them.
   */
  readonly endBytes: number;
}

/**
 * Reads through a file, to append to it.
 * @param sizeBytes of the file, which is not empty
 * @param mostPartBytes largest part of a block to accept; more than that is no end of a capture
 * @throws Error for a file of another kind, or a damaged one: it is not truncated
 */
function resumeOf(path: string, sizeBytes: number, mostPartBytes: number): Resume {
  const reader = new CaptureReader(path);
  try {
    let interfaces: number | undefined;
    for (let block = reader.next(); block !== undefined; block = reader.next()) {
      interfaces = interfacesAfter(block, interfaces);
      if (interfaces === undefined)
        throw refusal(path, 'it is no pcapng file that can be continued');
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

/**
 * The number of interfaces after a block. @returns undefined for a block outside a section of our
 * kind
 */
function interfacesAfter({ type, bytes }: Block, before: number | undefined): number | undefined {
  if (type === BlockType.SECTION_HEADER) return goesOn(bytes) ? 0 : undefined;
  if (before === undefined) return undefined;
  return type === BlockType.INTERFACE_DESCRIPTION ? before + 1 : before;
}

function refusal(path: string, why: string): Error {
  return new Error(`${path} exists and cannot be appended to: ${why}. Move it away`);
}
