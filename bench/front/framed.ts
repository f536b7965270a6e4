/** Messages over TCP as they are sent without a library: the length of each before it. */
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';
import type { Messenger, Messengers } from './messenger-end.js';

/** The length: 32 bits, big-endian. */
export const PREFIX_BYTES = 4;

/** Cuts what arrives into messages. */
export class Frames {
  /** Pieces of a message that is not complete; a long one is put together once. */
  private pieces: Buffer[] = [];
  private missingBytes = 0;

  constructor(private readonly take: (message: Uint8Array) => void) {}

  push(chunk: Buffer): void {
    this.missingBytes -= chunk.length;
    if (this.pieces.length > 0) this.pieces.push(chunk);
    if (this.pieces.length > 0 && this.missingBytes > 0) return;
    const bytes = this.pieces.length > 0 ? Buffer.concat(this.pieces) : chunk;
    let at = 0;
    this.missingBytes = 0;
    while (bytes.length - at >= PREFIX_BYTES) {
      const start = at + PREFIX_BYTES;
      const end = start + bytes.readUInt32BE(at);
      if (end > bytes.length) {
        this.missingBytes = end - bytes.length;
        break;
      }
      this.take(bytes.subarray(start, end));
      at = end;
    }
    this.pieces = at < bytes.length ? [bytes.subarray(at)] : [];
  }
}

/** The message behind its length. */
export function framed(message: Uint8Array): Buffer {
  const frame = Buffer.allocUnsafe(PREFIX_BYTES + message.length);
  frame.writeUInt32BE(message.length);
  frame.set(message, PREFIX_BYTES);
  return frame;
}

class FramedSocket implements Messenger {
  constructor(private readonly socket: Socket) {}

  send(message: Uint8Array): void {
    this.socket.write(framed(message));
  }

  onMessage(take: (message: Uint8Array) => void): void {
    const frames = new Frames(take);
    this.socket.on('data', (chunk) => frames.push(chunk));
  }

  onError(failed: (error: Error) => void): void {
    this.socket.on('error', failed);
  }

  close(): void {
    this.socket.destroy();
  }
}

export class FramedSockets implements Messengers {
  private server: Server | undefined;

  listen(host: string, accept: (messenger: Messenger) => void): Promise<number> {
    const server = createServer({ noDelay: true }, (socket) => accept(new FramedSocket(socket)));
    this.server = server;
    return new Promise((resolve, reject) => {
      server.on('error', reject).listen(0, host, () => {
        resolve((server.address() as AddressInfo).port);
      });
    });
  }

  unlisten(): void {
    this.server?.close();
    this.server = undefined;
  }

  connect(host: string, port: number): Promise<Messenger> {
    return new Promise((resolve, reject) => {
      const socket = connect({ host, port, noDelay: true });
      socket.once('error', reject).once('connect', () => {
        socket.off('error', reject);
        resolve(new FramedSocket(socket));
      });
    });
  }
}
