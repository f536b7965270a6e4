/** One side of a connection, sans-IO. */
export { CONTROL_SLOTS } from './controls.js';
export { type Outgoing, Session, type TargetList } from './session.js';
export { SESSION_TRANSITIONS } from './states.js';
