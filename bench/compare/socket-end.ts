/** The peers of Node itself: the same workloads over its TCP and Unix sockets. */
import {
  type AddressInfo,
  type NetConnectOpts,
  type Server,
  type Socket,
  connect,
  createServer,
} from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { AwakeLoop } from './awake-loop.js';
import { type Cell, slotsOfSet } from './cells.js';
import type { Count, End, Target } from './end.js';
import { HalfRoundTrips } from './half-round-trips.js';
import { StreamClock } from './stream-clock.js';

/** What one read may bring: more than the kernel has ready at a time. */
const READ_BYTES = 1 << 20;

export class SocketEnd implements End {
  private server: Server | undefined;
  private readonly awake = new AwakeLoop();

  constructor(
    private readonly kind: 'tcp' | 'unix',
    private readonly local: string,
    private readonly remote: string,
  ) {}

  async listen(cell: Cell): Promise<Target> {
    this.awake.begin(cell);
    const server = createServer({ allowHalfOpen: true, noDelay: true });
    this.server = server;
    server.on('connection', (socket) => {
      if (cell.workload === 'ping') echo(socket);
      else drain(socket, cell, (port) => this.at(this.remote, port));
    });
    return { port: await this.listenOn(server), address: 0n, rmrContext: 0 };
  }

  run(cell: Cell, target: Target, seconds: number): Promise<Count> {
    this.awake.begin(cell);
    return cell.workload === 'ping'
      ? this.ping(target, seconds)
      : this.stream(cell, target, seconds);
  }

  stop(): Promise<void> {
    this.awake.end();
    this.server?.close();
    this.server = undefined;
    return Promise.resolve();
  }

  close(): Promise<void> {
    return this.stop();
  }

  /** The port; of a Unix socket the process that its path is named after. */
  private listenOn(server: Server): Promise<number> {
    const where = this.kind === 'tcp' ? { port: 0, host: this.local } : pathOf(process.pid);
    return new Promise((resolve, reject) => {
      server.on('error', reject).listen(where, () => {
        const isTcp = this.kind === 'tcp';
        resolve(isTcp ? (server.address() as AddressInfo).port : process.pid);
      });
    });
  }

  private at(host: string, port: number): NetConnectOpts {
    return this.kind === 'tcp' ? { port, host, noDelay: true } : pathOf(port);
  }

  /** A write each message, so many unfinished; then until the other side has read it all. */
  private async stream(cell: Cell, target: Target, seconds: number): Promise<Count> {
    const server = createServer({ allowHalfOpen: true, noDelay: true });
    const control = connect(this.at(this.remote, target.port));
    const port = await this.listenOn(server);
    try {
      return await new Promise((resolve, reject) => {
        server.on('connection', (socket) => {
          write(socket, cell, seconds).then(resolve, reject);
        });
        control.on('error', reject).write(String(port));
      });
    } finally {
      control.end();
      server.close();
    }
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
      const onread = { buffer, callback: onBytes };
      const socket = connect({ ...this.at(this.remote, target.port), onread });
      socket.on('error', reject).on('connect', () => {
        times.start();
        socket.write(payload);
      });
    });
  }
}

function pathOf(pid: number): { path: string } {
  return { path: join(tmpdir(), `dapl-bench-${pid}.sock`) };
}

function write(socket: Socket, cell: Cell, seconds: number): Promise<Count> {
  // As much memory as softroce sends from.
  const length = Math.max(cell.depth, slotsOfSet(cell));
  const payloads = Array.from({ length }, () => Buffer.alloc(cell.bytes, 1));
  return new Promise((resolve, reject) => {
    const clock = new StreamClock(seconds);
    const every = cell.bytes < 4096 ? cell.depth : 1;
    let messages = 0;
    let done = 0;
    let isOver = false;
    const next = (): void => {
      if (!isOver && done % every === 0) isOver = clock.isOver(done);
      if (isOver) {
        if (!socket.writableEnded) socket.end();
        return;
      }
      socket.write(payloads[messages % payloads.length]!, onWritten);
      messages += 1;
    };
    const onWritten = (): void => {
      done += 1;
      next();
    };
    for (let i = 0; i < cell.depth; i++) next();
    socket.on('error', reject).on('end', () => resolve(clock.count(messages)));
    socket.resume();
  });
}

function echo(socket: Socket): void {
  socket.on('data', (bytes) => socket.write(bytes));
  socket.on('end', () => socket.end());
}

/**
 * Connects back to the port that the sender names: only who connects may read into memory of his
 * own, which is several times as fast. Takes everything, and says when it has.
 */
function drain(control: Socket, cell: Cell, at: (port: number) => NetConnectOpts): void {
  control.on('end', () => control.end());
  control.once('data', (text) => {
    const socket = connect({
      ...at(Number(text.toString())),
      allowHalfOpen: true,
      onread: { buffer: memoryToReadInto(cell), callback: () => true },
    });
    socket.on('end', () => socket.end());
  });
}

/** One buffer, or one behind the other in the working set of the cell. */
function memoryToReadInto({ workingSetBytes }: Cell): Uint8Array | (() => Uint8Array) {
  const memory = Buffer.alloc(Math.max(READ_BYTES, workingSetBytes), 1);
  if (memory.length === READ_BYTES) return memory;
  let next = 0;
  return () => {
    const at = next;
    next = (next + READ_BYTES) % memory.length;
    return memory.subarray(at, at + READ_BYTES);
  };
}
