/** One side of a cell over sockets of any kind: the same program for all of them. */
import { once } from 'node:events';
import type { Duplex } from 'node:stream';
import { AwakeLoop } from '../compare/awake-loop.js';
import type { Cell, Counters } from '../compare/cells.js';
import type { Count, End, Target } from '../compare/end.js';
import { HalfRoundTrips } from '../compare/half-round-trips.js';
import { LOOKS, StreamClock } from '../compare/stream-clock.js';
import type { Listening, SocketKind } from './kinds.js';

export class SocketsEnd implements End {
  private readonly awake = new AwakeLoop();
  private readonly open: Duplex[] = [];
  private listening: Listening | undefined = undefined;

  constructor(private readonly kind: SocketKind) {}

  async listen(cell: Cell): Promise<Target> {
    this.awake.begin(cell);
    this.listening = await this.kind.listen(cell, (socket) => {
      this.open.push(socket);
      // The client is told of an error, too.
      socket.on('error', () => undefined);
      if (cell.workload === 'send') drain(socket);
      else answer(socket, cell.bytes);
    });
    return { port: this.listening.port, address: 0n, rmrContext: 0 };
  }

  async run(cell: Cell, { port }: Target, seconds: number): Promise<Count> {
    this.awake.begin(cell);
    const sockets: Duplex[] = [];
    for (let i = 0; i < cell.endpoints; i++) {
      const socket = this.kind.connect(cell, port);
      sockets.push(socket);
      this.open.push(socket);
      await once(socket, 'connect');
    }
    if (cell.workload === 'ping') return ping(sockets[0]!, cell, seconds);
    return (cell.workload === 'calls' ? calls : stream)(sockets, cell, seconds);
  }

  async stop(): Promise<void> {
    this.awake.end();
    this.listening?.close();
    this.listening = undefined;
    for (const socket of this.open.splice(0)) {
      socket.destroy();
      if (!socket.closed) await gone(socket);
    }
  }

  counters(): Counters | undefined {
    return this.kind.counters?.();
  }

  async close(): Promise<void> {
    await this.stop();
    await this.kind.close();
  }
}

/** What a connection may take to end: longer, and it is left alone. */
const GONE_MS = 200;

function gone(socket: Duplex): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, GONE_MS);
    socket.once('close', () => {
      clearTimeout(timer);
      resolve();
    });
  });
}

/** Calls back once for each message of so many bytes. */
function onMessages(socket: Duplex, bytes: number, take: () => void): void {
  let received = 0;
  socket.on('data', (chunk: Uint8Array) => {
    received += chunk.length;
    for (; received >= bytes; received -= bytes) take();
  });
}

function answer(socket: Duplex, bytes: number): void {
  const payload = Buffer.alloc(bytes, 2);
  onMessages(socket, bytes, () => socket.write(payload));
  socket.on('end', () => socket.end());
}

/** Reads everything, and says when it has. */
function drain(socket: Duplex): void {
  socket.on('data', () => undefined);
  socket.on('end', () => socket.end());
}

function ping(socket: Duplex, { bytes }: Cell, seconds: number): Promise<Count> {
  const payload = Buffer.alloc(bytes, 1);
  const times = new HalfRoundTrips(seconds);
  return new Promise((resolve, reject) => {
    socket.on('error', reject);
    onMessages(socket, bytes, () => {
      if (times.lap()) socket.write(payload);
      else resolve(times.count());
    });
    times.start();
    socket.write(payload);
  });
}

/** A request under way on each connection. */
function calls(sockets: readonly Duplex[], { bytes }: Cell, seconds: number): Promise<Count> {
  const payload = Buffer.alloc(bytes, 1);
  const clock = new StreamClock(seconds);
  let answers = 0;
  let open = sockets.length;
  let isOver = false;
  return new Promise((resolve, reject) => {
    for (const socket of sockets) {
      socket.on('error', reject);
      onMessages(socket, bytes, () => {
        answers += 1;
        if (!isOver && answers % LOOKS === 0) isOver = clock.isOver(answers);
        if (!isOver) socket.write(payload);
        else if (--open === 0) resolve(clock.count(answers));
      });
      socket.write(payload);
    }
  });
}

/** Each connection writes for as long as `write` says yes; then until the peer has read it all. */
function stream(sockets: readonly Duplex[], { bytes }: Cell, seconds: number): Promise<Count> {
  const payload = Buffer.alloc(bytes, 1);
  const clock = new StreamClock(seconds);
  let done = 0;
  let open = sockets.length;
  return new Promise((resolve, reject) => {
    const onWritten = (): void => void (done += 1);
    for (const socket of sockets) {
      const fill = (): void => {
        while (!clock.isOver(done)) if (!socket.write(payload, onWritten)) return;
        socket.end();
      };
      socket.on('error', reject).on('drain', fill);
      socket.on('end', () => {
        if (--open === 0) resolve(clock.count(done));
      });
      socket.resume();
      fill();
    }
  });
}
