/** The initiator's side of iSCSI, without connection, clock and randomness. */
export * from './chap-client.js';
export * from './discovery.js';
export * from './iscsi-error.js';
export * from './login.js';
export * from './parameters.js';
export * from './retry.js';
export * from './session.js';
export * from './states.js';
export * from './tags.js';
export * from './task.js';
export * from './write-plan.js';
