/** The wire format of SDP: codecs and field tables, which know no session. */
export { Flags, MIDS } from './bsdh.js';
export {
  emitHello,
  emitHelloAck,
  type Hello,
  HELLO_ACK_BYTES,
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
export { SdpWireError } from './wire-error.js';
