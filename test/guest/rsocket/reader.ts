/** Reads so many bytes of a socket, as blocking programs do. */
import { once } from 'node:events';
import type { Readable } from 'node:stream';

import type { RdmaSocket } from '../../../samples/ulp/socket/index.js';

/** @throws Error when the peer has ended before; the socket's own */
export async function readBytes(socket: Readable, count: number): Promise<Buffer> {
  const parts: Buffer[] = [];
  for (let left = count; left > 0;) {
    const part = socket.read(Math.min(left, socket.readableLength || left)) as Buffer | null;
    if (part !== null) {
      parts.push(part);
      left -= part.length;
      continue;
    }
    if (socket.readableEnded) throw new Error(`the peer ended ${left} bytes before`);
    await readableOrEnd(socket);
  }
  return Buffer.concat(parts);
}

async function readableOrEnd(socket: Readable): Promise<void> {
  const other = new AbortController();
  const waits = ['readable', 'end'].map((name) => once(socket, name, { signal: other.signal }));
  try {
    await Promise.race(waits);
  } finally {
    other.abort();
    await Promise.allSettled(waits);
  }
}

/** Resolves when the bytes have been handed over. */
export async function writeAll(socket: RdmaSocket, bytes: Uint8Array): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    socket.write(bytes, (error) => (error ? reject(error) : resolve()));
  });
}

/** Ends this side, reads what is left, and waits until it is over. */
export async function leave(socket: RdmaSocket): Promise<void> {
  const closed = socket.closed ? Promise.resolve() : once(socket, 'close');
  socket.resume();
  socket.end();
  await closed;
}
