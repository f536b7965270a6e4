/** The peer: the same workloads over Node's own TCP. */
import { type AddressInfo, type Server, type Socket, connect, createServer } from 'node:net';
import { performance } from 'node:perf_hooks';
import type { Cell } from './cells.js';
import type { Count, End, Target } from './end.js';
import { HalfRoundTrips } from './half-round-trips.js';

/** What one read may bring: more than the kernel has ready at a time. */
const READ_BYTES = 1 << 20;

export class TcpEnd implements End {
  private server: Server | undefined;
  private spinning = false;

  constructor(
    private readonly local: string,
    private readonly remote: string,
  ) {}

  listen(cell: Cell): Promise<Target> {
    this.spin(cell);
    const server = createServer({ allowHalfOpen: true, noDelay: true });
    this.server = server;
    server.on('connection', (socket) => {
      if (cell.workload === 'ping') echo(socket);
      else drain(socket, this.remote);
    });
    return new Promise((resolve, reject) => {
      server.on('error', reject);
      server.listen(0, this.local, () => {
        const { port } = server.address() as AddressInfo;
        resolve({ port, address: 0n, rmrContext: 0 });
      });
    });
  }

  run(cell: Cell, target: Target, seconds: number): Promise<Count> {
    this.spin(cell);
    return cell.workload === 'ping'
      ? this.ping(target, seconds)
      : this.stream(cell, target, seconds);
  }

  stop(): Promise<void> {
    this.spinning = false;
    this.server?.close();
    this.server = undefined;
    return Promise.resolve();
  }

  close(): Promise<void> {
    return this.stop();
  }

  /** Keeps the event loop from sleeping. */
  private spin(cell: Cell): void {
    if (cell.mode !== 'spin') return;
    this.spinning = true;
    const turn = (): void => {
      if (this.spinning) setImmediate(turn);
    };
    turn();
  }

  /** A write each message, so many unfinished; then until the other side has read it all. */
  private stream(cell: Cell, target: Target, seconds: number): Promise<Count> {
    return new Promise((resolve, reject) => {
      // As much memory as softroce sends from.
      const payloads = Array.from({ length: cell.depth }, () => Buffer.alloc(cell.bytes, 1));
      const send = (socket: Socket): void => {
        let messages = 0;
        const startMs = performance.now();
        const next = (): void => {
          if (performance.now() - startMs < seconds * 1000) {
            socket.write(payloads[messages % cell.depth]!, next);
            messages += 1;
          } else if (!socket.writableEnded) socket.end();
        };
        for (let i = 0; i < cell.depth; i++) next();
        const onEnd = (): void => {
          control.end();
          server.close();
          resolve({ messages, seconds: (performance.now() - startMs) / 1000 });
        };
        socket.on('error', reject).on('end', onEnd).resume();
      };
      const server = createServer({ allowHalfOpen: true, noDelay: true }, send);
      const control = connect({ port: target.port, host: this.remote });
      control.on('error', reject);
      server.on('error', reject).listen(0, this.local, () => {
        control.write(String((server.address() as AddressInfo).port));
      });
    });
  }

  private ping(target: Target, seconds: number): Promise<Count> {
    return new Promise((resolve, reject) => {
      const payload = Buffer.alloc(8, 1);
      const times = new HalfRoundTrips(seconds);
      let received = 0;
      const buffer = Buffer.alloc(READ_BYTES);
      const onBytes = (bytes: number): boolean => {
        received += bytes;
        if (received < 8) return true;
        received -= 8;
        if (times.lap()) socket.write(payload);
        else {
          socket.end();
          resolve(times.count());
        }
        return true;
      };
      const socket = connect({
        port: target.port,
        host: this.remote,
        noDelay: true,
        onread: { buffer, callback: onBytes },
      });
      socket.on('error', reject);
      socket.on('connect', () => {
        times.start();
        socket.write(payload);
      });
    });
  }
}

function echo(socket: Socket): void {
  socket.on('data', (bytes) => socket.write(bytes));
  socket.on('end', () => socket.end());
}

/**
 * Connects back to the port that the sender names: only who connects may read into memory of his
 * own, which is several times as fast. Takes everything, and says when it has.
 */
function drain(control: Socket, sender: string): void {
  control.on('end', () => control.end());
  control.once('data', (text) => {
    const socket = connect({
      port: Number(text.toString()),
      host: sender,
      allowHalfOpen: true,
      onread: { buffer: Buffer.alloc(READ_BYTES), callback: () => true },
    });
    socket.on('end', () => socket.end());
  });
}
