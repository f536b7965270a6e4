/** The wire of SDP: codecs and field tables, which know no session. */
export { type Bsdh, BSDH_BYTES, Flags, MIDS, type MidName } from './bsdh.js';
export {
  emitHello,
  emitHelloAck,
  type Hello,
  HELLO_ACK_BYTES,
  HELLO_BYTES,
  type HelloAck,
  type IpBytes,
  parseHello,
  parseHelloAck,
  VERSION,
} from './hello.js';
export {
  type Advert,
  type Body,
  emitHead,
  type Half,
  headBytes,
  type Message,
  type Mode,
  MODES,
  parseMessage,
  type Sequence,
} from './message.js';
export { SdpWireError, type SdpWireErrorOptions } from './wire-error.js';
