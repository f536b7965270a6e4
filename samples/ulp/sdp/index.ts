/**
 * `dapl/ulp/sdp`: byte streams by the Sockets Direct Protocol of InfiniBand (IBTA annex A4). It was
 * tested against itself and a dissector: no current system speaks it. See docs/sdp.md.
 */
export type { AdapterSource } from '../socket/over-dat/index.js';
export type { SdpListenOptions } from './transport/listener.js';
export type { SdpOptions, Time } from './transport/options.js';
export { sdp, SdpProtocol } from './transport/protocol.js';
export { type SdpModes, SdpStream } from './transport/stream.js';
export type { Tap, TapEvent } from './transport/tap.js';
export { SdpWireError } from './wire/index.js';
