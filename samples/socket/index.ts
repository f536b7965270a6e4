/**
 * `dapl/ulp/socket`: Node's sockets over byte-stream protocols on RDMA. See docs/rsocket.md.
 */
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
