/** What the suites of sockets run over: a byte-stream protocol, with two ends. */
import { once } from 'node:events';
import {
  type ByteStreamProtocol,
  createConnection,
  createServer,
  type RdmaServer,
  type RdmaServerOptions,
  type RdmaSocket,
  type RdmaSocketOptions,
} from '../../samples/ulp/socket/index.js';

export interface SocketWorld {
  readonly client: ByteStreamProtocol;
  readonly server: ByteStreamProtocol;
  /** Of the server. */
  readonly address: string;
  close(): Promise<void>;
}

/** Makes the two ends of a test. */
export type OpenWorld = () => Promise<SocketWorld>;

/** What has been dialled in a world: the adapters stay open until it has ended. */
const dialled = new WeakMap<SocketWorld, Promise<unknown>[]>();

/** Calls the test with a world, which is closed behind it. */
export function inWorld(
  open: OpenWorld,
  test: (world: SocketWorld) => Promise<void>,
): () => Promise<void> {
  return async () => {
    const world = await open();
    try {
      await test(world);
      await Promise.all(dialled.get(world) ?? []);
    } finally {
      await world.close();
    }
  };
}

/** A server that listens, on a port of the protocol's choice. */
export async function listening(
  world: SocketWorld,
  onConnection: (socket: RdmaSocket) => void = () => undefined,
  options: Partial<RdmaServerOptions> = {},
): Promise<{ readonly server: RdmaServer; readonly port: number }> {
  const server = createServer({ protocol: world.server, ...options }, onConnection);
  server.listen(0, world.address);
  await once(server, 'listening');
  return { server, port: server.address()!.port };
}

export function dial(
  world: SocketWorld,
  port: number,
  options: Partial<RdmaSocketOptions> = {},
): RdmaSocket {
  const of = { protocol: world.client, host: world.address, port, ...options };
  const socket = createConnection(of);
  const end = new Promise((resolve) => socket.once('close', resolve));
  dialled.set(world, [...(dialled.get(world) ?? []), end]);
  return socket;
}

/** Two ends of a connection, and what closes the server. */
export async function connected(
  world: SocketWorld,
  options: Partial<RdmaSocketOptions> = {},
): Promise<{
  readonly client: RdmaSocket;
  readonly served: RdmaSocket;
  readonly server: RdmaServer;
}> {
  const { server, port } = await listening(world, undefined, options);
  const client = dial(world, port, options);
  const [[served]] = await Promise.all([
    once(server, 'connection') as Promise<[RdmaSocket]>,
    once(client, 'connect'),
  ]);
  return { client, served, server };
}

/** Closes a server, and resolves when its connections have ended. */
export function closed(server: RdmaServer): Promise<void> {
  return new Promise((resolve) => server.close(() => resolve()));
}

/** All that comes, until the end; the socket may go on sending. */
export async function textOf(socket: RdmaSocket): Promise<string> {
  let text = '';
  socket.setEncoding('utf8').on('data', (part: string) => (text += part));
  socket.resume();
  await once(socket, 'end');
  return text;
}

/** The error that ends a socket, and what `close` says of it. */
export async function failureOf(
  socket: RdmaSocket,
): Promise<{ readonly error: NodeJS.ErrnoException; readonly hadError: boolean }> {
  let error: NodeJS.ErrnoException | undefined;
  socket.once('error', (cause) => (error = cause));
  const hadError = await new Promise<boolean>((resolve) => socket.once('close', resolve));
  if (error === undefined) throw new Error('the socket has ended without an error');
  return { error, hadError };
}
