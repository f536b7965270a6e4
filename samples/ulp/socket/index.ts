/**
 * `dapl/ulp/socket`: Node's sockets over byte-stream protocols on RDMA. See docs/rsocket.md.
 */
export type { SocketAddressInfo } from './addresses.js';
export { RdmaAgent, RdmaSecureAgent } from './agents.js';
export type { ConnectOptions, ListenOptions } from './arguments.js';
export { createConnection, type CreateConnectionOptions, createServer } from './create.js';
export { type DropArgument, RdmaServer, type RdmaServerOptions } from './rdma-server.js';
export { RdmaSocket, type RdmaSocketOptions } from './rdma-socket.js';
export { StreamError, type StreamErrorCode, type StreamErrorOptions } from './stream-error.js';
export type {
  ByteStream,
  ByteStreamEvents,
  ByteStreamListener,
  ByteStreamProtocol,
  StreamAddress,
  StreamConnectOptions,
  StreamListenOptions,
  WriteDone,
} from './stream-transport.js';
