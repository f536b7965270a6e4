/** Sockets and servers of every kind of endpoint: those of node:net, and rsockets. */
import { once } from 'node:events';
import { type AddressInfo, connect as netConnect, Server } from 'node:net';
import { rsocket, type RsocketOptions } from 'dapl/ulp/rsocket';
import { createConnection, RdmaServer } from 'dapl/ulp/socket';
import type { Adapters } from './adapters.js';
import type { Endpoint } from './endpoint.js';
import type { AnySocket } from './resets.js';

/** Opens a new connection to an endpoint on each call. */
export type Dial = () => AnySocket;

/** The directions end independently of each other. */
const HALF_OPEN = { allowHalfOpen: true } as const;

/**
 * @param bufferBytes of each rsocket, for either direction
 * @throws errors of opening the adapter
 */
export async function diallerOf(
  endpoint: Endpoint,
  adapters: Adapters,
  bufferBytes: number,
): Promise<Dial> {
  if (endpoint.kind === 'unix') {
    return () => netConnect({ ...HALF_OPEN, path: endpoint.path });
  }
  const { kind, host, port } = endpoint;
  if (kind === 'tcp') return () => netConnect({ ...HALF_OPEN, host, port, noDelay: true });
  const protocol = rsocket(await adapters.toward(host), buffers(bufferBytes));
  return () => createConnection({ ...HALF_OPEN, protocol, host, port });
}

export interface Listening {
  /** The endpoint, with the port that was chosen. */
  readonly endpoint: Endpoint;
  /** Accepts no more connections; open ones continue. */
  close(): void;
}

/**
 * @param bufferBytes of each rsocket, for either direction
 * @param onSocket receives each accepted connection, paused
 * @param onError is called when the listener fails
 * @throws errors of opening the adapter, and of `listen`
 */
export async function listenOn(
  endpoint: Endpoint,
  adapters: Adapters,
  bufferBytes: number,
  onSocket: (socket: AnySocket) => void,
  onError: (error: Error) => void,
): Promise<Listening> {
  const options = { ...HALF_OPEN, pauseOnConnect: true, noDelay: true };
  if (endpoint.kind === 'rsocket') {
    const protocol = rsocket(await adapters.on(endpoint.host), buffers(bufferBytes));
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

/** Messages in flight each way. More of them than fit into the buffers only cost memory. */
const MESSAGES = 64;

function buffers(bytes: number): RsocketOptions {
  return { receiveBytes: bytes, sendBytes: bytes, credits: MESSAGES, sends: MESSAGES };
}
