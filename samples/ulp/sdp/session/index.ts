/** The session of SDP: sans-IO, tables of states, credits and modes. */
export type { Area, Exposed, Failure, Outgoing, SessionConfig, SessionHost } from './host.js';
export {
  agreedReceiveBytes,
  configOf,
  isVersionKnown,
  LEAST_RECEIVE_BYTES,
  type LocalLimits,
  refusalOf,
} from './negotiation.js';
export { Session } from './session.js';
export { MOST_MESSAGE_BYTES } from './source.js';
