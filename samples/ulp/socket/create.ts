/** Functions like those of node:net: create a connecting socket, create a server. */
import type { ConnectOptions } from './arguments.js';
import { RdmaServer, type RdmaServerOptions } from './rdma-server.js';
import { RdmaSocket, type RdmaSocketOptions } from './rdma-socket.js';

/** Options of `socket.connect`, and those of the socket itself. */
export interface CreateConnectionOptions extends RdmaSocketOptions, ConnectOptions {
  /** Milliseconds, as in `socket.setTimeout`. */
  readonly timeout?: number | undefined;
  readonly keepAlive?: boolean | undefined;
  readonly keepAliveInitialDelay?: number | undefined;
}

/** Creates a socket and connects it; `connect` or `error` follows. @throws as `socket.connect` */
export function createConnection(
  options: CreateConnectionOptions,
  onConnect?: () => void,
): RdmaSocket {
  const socket = new RdmaSocket(options);
  const { timeout, keepAlive = false, keepAliveInitialDelay } = options;
  if (timeout !== undefined) socket.setTimeout(timeout);
  if (keepAlive) socket.setKeepAlive(true, keepAliveInitialDelay);
  return onConnect === undefined ? socket.connect(options) : socket.connect(options, onConnect);
}

export function createServer(
  options: RdmaServerOptions,
  onConnection?: (socket: RdmaSocket) => void,
): RdmaServer {
  return new RdmaServer(options, onConnection);
}
