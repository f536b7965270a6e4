/**
 * `dapl/ulp/rsocket`: byte streams over RDMA as librdmacm's rsockets have them, so that its
 * programs are peers. See docs/rsocket.md.
 */
export type { AdapterSource } from '../socket/over-dat/index.js';
export { Iomap, type IomapOptions } from './glue/iomap.js';
export type { RsocketListenOptions } from './glue/listener.js';
export type { After, RsocketOptions } from './glue/options.js';
export { rsocket, RsocketProtocol } from './glue/protocol.js';
export { RsocketStream } from './glue/stream.js';
export { RsocketProtocolError } from './wire/index.js';
