/** Agents of node:http and node:https whose connections are sockets over RDMA. */
import * as http from 'node:http';
import * as https from 'node:https';
import type { Duplex } from 'node:stream';
import { createConnection } from './create.js';
import type { RdmaSocket } from './rdma-socket.js';
import type { ByteStreamProtocol } from './stream-transport.js';

/** The parts of a request that an agent uses for a new connection. */
type Wanted = http.ClientRequestArgs & { readonly signal?: AbortSignal | undefined };

function socketFor(protocol: ByteStreamProtocol, wanted: Wanted): RdmaSocket {
  const { host, port, family, hints, lookup, localAddress, timeout } = wanted;
  return createConnection({
    protocol,
    port: port ?? wanted.defaultPort ?? 80,
    host: host ?? undefined,
    family: family as 0 | 4 | 6 | undefined,
    hints,
    lookup,
    localAddress,
    timeout,
  });
}

/** The `agent` for `http.request`; keep-alive and limits are those of `http.Agent`. */
export class RdmaAgent extends http.Agent {
  constructor(
    private readonly streams: ByteStreamProtocol,
    options?: http.AgentOptions,
  ) {
    super(options);
  }

  override createConnection(options: http.ClientRequestArgs): Duplex {
    return socketFor(this.streams, options);
  }
}

/** The `agent` for `https.request`: TLS over a socket over RDMA. */
export class RdmaSecureAgent extends https.Agent {
  constructor(
    private readonly streams: ByteStreamProtocol,
    options?: https.AgentOptions,
  ) {
    super(options);
  }

  override createConnection(
    options: https.RequestOptions,
    callback?: (error: Error | null, stream: Duplex) => void,
  ): Duplex | null | undefined {
    const socket = socketFor(this.streams, options);
    return super.createConnection({ ...options, socket } as https.RequestOptions, callback);
  }
}
