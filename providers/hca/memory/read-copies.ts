/**
 * Copies of memory that READs were answered from, made when the memory itself goes: the peer may
 * not have received the answers. Their total size is bounded; the oldest go first.
 */
import type { PacketPort } from '../../../core/spi/index.js';
import type { Region } from './region.js';

/** Sixteen connections that all have as much in flight as they may. */
export const MOST_COPIED_BYTES = 64 << 20;

export interface ReadCopy {
  /** The port's number for it. */
  readonly port: number;
  readonly lengthBytes: number;
}

export class ReadCopies {
  bytes = 0;
  /** Oldest first. */
  private readonly copies = new Set<ReadCopy>();

  /** @param release gives a region's port number back once no packet to send refers to it */
  constructor(
    private readonly port: PacketPort,
    private readonly release: (portRegion: number) => void,
  ) {}

  keep(region: Region, offset: number, lengthBytes: number): ReadCopy {
    for (const oldest of this.copies) {
      if (this.bytes + lengthBytes <= MOST_COPIED_BYTES) break;
      this.drop(oldest);
    }
    const bytes = new Uint8Array(lengthBytes);
    region.copyTo(bytes, offset);
    const copy = { port: this.port.addRegion(bytes.buffer, 0, lengthBytes), lengthBytes };
    this.copies.add(copy);
    this.bytes += lengthBytes;
    return copy;
  }

  /** False once it had to make room for younger ones. */
  has(copy: ReadCopy): boolean {
    return this.copies.has(copy);
  }

  drop(copy: ReadCopy): void {
    if (!this.copies.delete(copy)) return;
    this.bytes -= copy.lengthBytes;
    this.release(copy.port);
  }
}
