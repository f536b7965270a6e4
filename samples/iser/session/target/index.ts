/** The session of a target: sans-IO. */
export * from './command-window.js';
export * from './connection.js';
export * from './datamover.js';
export * from './device-server.js';
export * from './keep-alive.js';
export type { LoginIdentity, LoginRules } from './login/login.js';
export { Login } from './login/login.js';
export * from './login/operational.js';
export * from './login/refusal.js';
export type { Authentication, Secrets } from './login/security.js';
export * from './protocol-fault.js';
export * from './states.js';
export * from './target-node.js';
export * from './tcp-transfers.js';
