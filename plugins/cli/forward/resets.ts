/** Tells a socket that was reset from one that has ended, and resets sockets. */
import { readSync } from 'node:fs';
import type { Socket } from 'node:net';
import { RdmaSocket } from 'dapl/ulp/socket';

export type AnySocket = Socket | RdmaSocket;

/** The part of a libuv handle that node:net does not expose. */
interface Handle {
  readonly fd: number;
  /** TCP only. @returns 0 or a negative errno */
  getpeername?(out: object): number;
}

function handleOf(socket: AnySocket): Handle | undefined {
  return (socket as { readonly _handle?: Handle | null })._handle ?? undefined;
}

/**
 * True if a socket that emits `end` was reset. libuv reports the end of file when a read was short
 * and poll(2) said POLLHUP, which a RST sets as a FIN does (uv__stream_io). The kernel still has
 * the error: the next read(2) returns ECONNRESET after a RST, and 0 after a FIN.
 */
export function hasEndedByReset(socket: AnySocket): boolean {
  const fd = handleOf(socket)?.fd ?? -1;
  if (fd < 0) return false;
  try {
    readSync(fd, new Uint8Array(1));
    return false;
  } catch {
    return true;
  }
}

/**
 * True if a socket was reset and does not report it, because nothing reads it while a slow receiver
 * holds it back. TCP: the kernel has closed a connection whose FIN this side has not sent. Only a
 * reset or a timeout does that.
 */
export function isBroken(socket: AnySocket): boolean {
  if (socket instanceof RdmaSocket) return socket.isBroken;
  if (socket.connecting || socket.writableEnded) return false;
  return (handleOf(socket)?.getpeername?.({}) ?? 0) !== 0;
}

/**
 * Resets a socket, so that the peer reads an error rather than an end. A Unix socket has no reset:
 * its peer reads an end.
 */
export function reset(socket: AnySocket): void {
  const canReset = socket instanceof RdmaSocket || handleOf(socket)?.getpeername !== undefined;
  if (canReset) socket.resetAndDestroy();
  else socket.destroy();
}
