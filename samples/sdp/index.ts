/**
 * `dapl/ulp/sdp`: byte streams by the Sockets Direct Protocol of InfiniBand (IBTA annex A4). It
 * interoperates with itself and a dissector: nothing living speaks it. See docs/sdp.md.
 */
export type { AdapterSource } from '../socket/over-dat/index.js';
export type { SdpListenOptions } from './glue/listener.js';
export type { SdpOptions, Time } from './glue/options.js';
export { sdp, SdpProtocol } from './glue/protocol.js';
export { type SdpModes, SdpStream } from './glue/stream.js';
export type { Tap, TapEvent } from './glue/tap.js';
export { SdpWireError } from './wire/index.js';
