/** Messages over TCP by a library that is widely used: `ws`, without compression. */
import type { AddressInfo } from 'node:net';
import { WebSocket, WebSocketServer } from 'ws';
import type { Messenger, Messengers } from './messenger-end.js';

class SocketOfWeb implements Messenger {
  constructor(private readonly socket: WebSocket) {}

  send(message: Uint8Array): void {
    this.socket.send(message);
  }

  onMessage(take: (message: Uint8Array) => void): void {
    // One Buffer each: the `binaryType` that a socket has without a word.
    this.socket.on('message', (data) => take(data as Buffer));
  }

  onError(failed: (error: Error) => void): void {
    this.socket.on('error', failed);
  }

  close(): void {
    this.socket.terminate();
  }
}

export class WebSockets implements Messengers {
  private server: WebSocketServer | undefined;

  listen(host: string, accept: (messenger: Messenger) => void): Promise<number> {
    const server = new WebSocketServer({ host, port: 0, perMessageDeflate: false });
    this.server = server;
    server.on('connection', (socket) => accept(new SocketOfWeb(socket)));
    return new Promise((resolve, reject) => {
      server.on('error', reject).on('listening', () => {
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
      const socket = new WebSocket(`ws://${host}:${port}`, { perMessageDeflate: false });
      socket.once('error', reject).once('open', () => {
        socket.off('error', reject);
        resolve(new SocketOfWeb(socket));
      });
    });
  }
}
