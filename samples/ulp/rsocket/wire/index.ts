/** The wire format of librdmacm's rsockets; docs/rsocket.md has it in tables. */
export * from './connection-data.js';
export * from './entries.js';
export * from './message.js';
