/** One side of a connection, sans-IO. */
export { CONTROL_SLOTS } from './controls.js';
export { type Outgoing, Session, type SessionOptions, type TargetList } from './session.js';
export {
  SESSION_TRANSITIONS,
  type SessionInput,
  type SessionState,
  type Transition,
} from './states.js';
