/**
 * Connections, datagrams and requests by host name and port (`dapl/easy`): `dapl/flow` over an
 * adapter that is chosen, opened, shared and closed automatically.
 */
export { Connection, Datagram, FlowError, type GrantJson, Message } from 'dapl/flow';
export type { Datagrams } from './datagrams.js';
export type { Listener } from './listener.js';
export type {
  AdapterOptions,
  ConnectOptions,
  DatagramOptions,
  ListenOptions,
  ResolveOptions,
} from './options.js';
export type { ProviderChoice } from './provider-choice.js';
export { Broadcast, type BroadcastOptions, type Reader } from './broadcast.js';
export { connect, datagrams, listen } from './calls.js';
export { Client, type ClientOptions, type ClientState } from './client.js';
export { reconnect, type ReconnectOptions, type ReconnectState } from './reconnect.js';
export { RemoteError } from './request-frames.js';
export { type Handler, type Request, serve, type ServeOptions, Server } from './server.js';
