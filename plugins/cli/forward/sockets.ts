/** Sockets and servers of every kind of end: node:net's, and those over rsockets. */
import { once } from 'node:events';
import { type AddressInfo, connect as netConnect, Server, type Socket } from 'node:net';
import { rsocket } from 'dapl/ulp/rsocket';
import { createConnection, RdmaServer, type RdmaSocket } from 'dapl/ulp/socket';
import type { Adapters } from './adapters.js';
import type { Endpoint } from './endpoint.js';

export type AnySocket = Socket | RdmaSocket;

/** Makes a connection to an end, each time that it is called. */
export type Dial = () => AnySocket;

/** The first bytes are not waited for, and the end of one direction is not that of the other. */
const HALF_OPEN = { allowHalfOpen: true } as const;

/** @throws what opening the adapter gives */
export async function diallerOf(endpoint: Endpoint, adapters: Adapters): Promise<Dial> {
  if (endpoint.kind === 'unix') {
    return () => netConnect({ ...HALF_OPEN, path: endpoint.path });
  }
  const { kind, host, port } = endpoint;
  if (kind === 'tcp') return () => netConnect({ ...HALF_OPEN, host, port, noDelay: true });
  const protocol = rsocket(await adapters.toward(host));
  return () => createConnection({ ...HALF_OPEN, protocol, host, port });
}

export interface Listening {
  /** With the port that was chosen. */
  readonly endpoint: Endpoint;
  /** Takes no more connections; those that are there go on. */
  close(): void;
}

/**
 * @param onSocket a connection that has come, paused
 * @param onError it listens no more, by itself
 * @throws what opening the adapter gives; an error of `listen`
 */
export async function listenOn(
  endpoint: Endpoint,
  adapters: Adapters,
  onSocket: (socket: AnySocket) => void,
  onError: (error: Error) => void,
): Promise<Listening> {
  const options = { ...HALF_OPEN, pauseOnConnect: true, noDelay: true };
  if (endpoint.kind === 'rsocket') {
    const protocol = rsocket(await adapters.on(endpoint.host));
    const server = new RdmaServer({ ...options, protocol }, onSocket);
    server.listen(endpoint.port, endpoint.host);
    await once(server, 'listening');
    server.on('error', onError);
    const { port } = server.address()!;
    return { endpoint: { ...endpoint, port }, close: () => void server.close() };
  }
  const server = new Server(options, onSocket);
  server.listen(endpoint.kind === 'unix' ? { path: endpoint.path } : { ...endpoint });
  await once(server, 'listening');
  server.on('error', onError);
  const close = (): void => void server.close();
  if (endpoint.kind === 'unix') return { endpoint, close };
  const { port } = server.address() as AddressInfo;
  return { endpoint: { ...endpoint, port }, close };
}

/** The peer is to read an error, and no end that looks like that of all bytes. */
export function reset(socket: AnySocket): void {
  // A Unix socket has no reset, and says so by an error of its own.
  if (socket.remoteAddress === undefined) socket.destroy();
  else socket.resetAndDestroy();
}
