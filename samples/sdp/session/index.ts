/** The session of SDP: sans-IO, tables of states, credits and modes. */
export { Credits, CREDITS_NEEDED, type CreditClass } from './credits.js';
export type {
  Area,
  Exposed,
  Failure,
  Outgoing,
  SessionConfig,
  SessionHost,
  SessionTimes,
  ZeroCopyConfig,
} from './host.js';
export { MODE_CHANGES, MODE_POLICY, MODE_RULES } from './modes.js';
export {
  agreedReceiveBytes,
  configOf,
  isVersionKnown,
  LEAST_RECEIVE_BYTES,
  LEAST_RECEIVES,
  type LocalLimits,
  refusalOf,
} from './negotiation.js';
export { SdpProtocolError } from './protocol-error.js';
export { Session } from './session.js';
export { MOST_MESSAGE_BYTES } from './source.js';
export { STATES, type StateName } from './states.js';
