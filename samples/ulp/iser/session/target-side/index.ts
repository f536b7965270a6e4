/** The session of a target: sans-IO. */
export * from './command-window.js';
export * from './connection.js';
export * from './datamover.js';
export * from './device-server.js';
export * from './keep-alive.js';
export * from './login/operational.js';
export * from './protocol-fault.js';
export * from './states.js';
export * from './target-node.js';
export * from './stall-watch.js';
export * from './tcp-transfers.js';
