/**
 * `dapl/flow`: connections, listeners and datagrams with promises over an open adapter, and their
 * parts. See docs/flow.md.
 */
export { BufferPool, type BufferPoolOptions, Lease } from './buffer-pool.js';
export { connect } from './connect.js';
export { Connection } from './connection.js';
export { Credits } from './credits.js';
export {
  Datagram,
  type DatagramOptions,
  Datagrams,
  datagrams,
  type ResolveDatagramOptions,
  type ServeDatagramOptions,
} from './datagrams.js';
export {
  CONNECTION_CODES,
  type ConnectionCode,
  type FlowCode,
  FlowError,
  type FlowErrorOptions,
} from './flow-error.js';
export { Grant, GRANT_ACCESS, type GrantAccess, type GrantJson } from './grant.js';
export { Inbox, iterate } from './inbox.js';
export { listen, Listener } from './listener.js';
export { Message } from './message.js';
export {
  type ConnectionOptions,
  type ConnectOptions,
  type ListenAnswer,
  type ListenOptions,
  type ListenRequest,
  type ReceiveOptions,
} from './options.js';
export type { Remote } from './remote.js';
export { type Held, type Post, Requests } from './requests.js';
export type { Data, SendOptions, TransferOptions, WriteOptions } from './transfer.js';
export {
  checkWait,
  type EndError,
  Wait,
  type WaitHost,
  type WaitOptions,
  type WaitOwner,
  Waits,
} from './wait.js';
