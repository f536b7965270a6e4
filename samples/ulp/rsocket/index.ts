/**
 * `dapl/ulp/rsocket`: byte streams over RDMA that interoperate with librdmacm's rsockets. See
 * docs/rsocket.md.
 */
export type { AdapterSource } from '../socket/over-dat/index.js';
export { Iomap, type IomapOptions } from './transport/iomap.js';
export type { RsocketListenOptions } from './transport/listener.js';
export type { After, RsocketOptions } from './transport/options.js';
export { rsocket, RsocketProtocol } from './transport/protocol.js';
export { RsocketStream } from './transport/stream.js';
export { RsocketProtocolError } from './wire/index.js';
