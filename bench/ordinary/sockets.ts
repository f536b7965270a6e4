/**
 * Programs over byte streams: TCP and Unix sockets of Node, rsockets. A length precedes each
 * message.
 */
import { type AddressInfo, connect, createServer, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Duplex } from 'node:stream';
import { framed, Frames, PREFIX_BYTES } from '../front/framed.js';
import { Inbox, type Job, type Link, type Program } from './link.js';

/** Longer messages are not copied behind their length. */
const COPIED_BYTES = 16_384;

export class SocketLink implements Link {
  private readonly inbox = new Inbox();

  constructor(private readonly socket: Duplex) {
    const frames = new Frames((message) => this.inbox.push(message));
    socket.on('data', (chunk: Buffer) => frames.push(chunk));
    socket.on('error', () => undefined).on('close', () => this.inbox.end());
  }

  send(message: Uint8Array): Promise<void> {
    const { socket } = this;
    return new Promise((resolve, reject) => {
      const onWritten = (error?: Error | null): void => (error ? reject(error) : resolve());
      if (message.length <= COPIED_BYTES) {
        socket.write(framed(message), onWritten);
        return;
      }
      const length = Buffer.allocUnsafe(PREFIX_BYTES);
      length.writeUInt32BE(message.length);
      socket.cork();
      socket.write(length);
      socket.write(message, onWritten);
      socket.uncork();
    });
  }

  receive(): Promise<Uint8Array> {
    return this.inbox.receive();
  }

  close(): Promise<void> {
    if (this.socket.closed) return Promise.resolve();
    return new Promise((resolve) => this.socket.end().once('close', resolve));
  }
}

/** Resolves with the link of a socket that connects. */
export function connected(socket: Duplex): Promise<Link> {
  return new Promise((resolve, reject) => {
    socket.once('error', reject).once('connect', () => resolve(new SocketLink(socket)));
  });
}

export class NodeProgram implements Program {
  private server: Server | undefined;

  constructor(
    private readonly kind: 'tcp' | 'unix',
    private readonly local: string,
    private readonly remote: string,
  ) {}

  listen(_job: Job, take: (link: Link) => void): Promise<number> {
    const server = createServer({ noDelay: true }, (socket) => take(new SocketLink(socket)));
    this.server = server;
    const isTcp = this.kind === 'tcp';
    return new Promise((resolve, reject) => {
      const where = isTcp ? { port: 0, host: this.local } : { path: pathOf(process.pid) };
      server.on('error', reject).listen(where, () => {
        resolve(isTcp ? (server.address() as AddressInfo).port : process.pid);
      });
    });
  }

  connect(_job: Job, port: number): Promise<Link> {
    const isTcp = this.kind === 'tcp';
    const where = isTcp ? { port, host: this.remote, noDelay: true } : { path: pathOf(port) };
    return connected(connect(where));
  }

  close(): Promise<void> {
    this.server?.close();
    return Promise.resolve();
  }
}

function pathOf(pid: number): string {
  return join(tmpdir(), `dapl-bench-ordinary-${pid}.sock`);
}
