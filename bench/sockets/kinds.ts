/** The sockets that are measured: ours over softroce, and those of Node. All by one interface. */
import * as net from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Duplex } from 'node:stream';
import { type Ia, openIa } from 'dapl';
import { softroce } from 'dapl/providers/softroce';
import { rsocket } from '../../samples/ulp/rsocket/index.js';
import { sdp } from '../../samples/ulp/sdp/index.js';
import {
  type ByteStreamProtocol,
  createConnection,
  createServer,
  type RdmaServer,
} from '../../samples/ulp/socket/index.js';
import type { Cell, Counters } from '../compare/cells.js';

/** A server of any kind. */
export interface Listening {
  readonly port: number;
  /** Listens no more. */
  close(): void;
}

export interface SocketKind {
  /** @param take a connection that has come */
  listen(cell: Cell, take: (socket: Duplex) => void): Promise<Listening>;
  /** A socket that is connecting, or has been. */
  connect(cell: Cell, port: number): Duplex;
  /** What its device has counted; absent where there is none. */
  counters?(): Counters;
  close(): Promise<void>;
}

/** Node's TCP, and its Unix sockets, whose path is named after the process that listens. */
export class NodeSockets implements SocketKind {
  constructor(
    private readonly kind: 'tcp' | 'unix',
    private readonly local: string,
    private readonly remote: string,
  ) {}

  listen(_cell: Cell, take: (socket: Duplex) => void): Promise<Listening> {
    const server = net.createServer({ allowHalfOpen: true, noDelay: true }, take);
    return new Promise((resolve, reject) => {
      const isTcp = this.kind === 'tcp';
      const where = isTcp ? { port: 0, host: this.local } : { path: pathOf(process.pid) };
      server.on('error', reject).listen(where, () => {
        const port = isTcp ? (server.address() as net.AddressInfo).port : process.pid;
        resolve({ port, close: () => void server.close() });
      });
    });
  }

  connect(_cell: Cell, port: number): Duplex {
    const where =
      this.kind === 'tcp' ? { port, host: this.remote, noDelay: true } : { path: pathOf(port) };
    return net.connect({ ...where, allowHalfOpen: true });
  }

  close(): Promise<void> {
    return Promise.resolve();
  }
}

function pathOf(pid: number): string {
  return join(tmpdir(), `dapl-bench-sockets-${pid}.sock`);
}

type Polling = 'event' | 'adaptive';

/**
 * Protocols over softroce: SDP as it is, copying everything, and copying nothing that it need not.
 */
const PROTOCOLS = {
  rsocket: (ia: Ia, polling: Polling) => rsocket(ia, { polling }),
  sdp: (ia: Ia, polling: Polling) => sdp(ia, { polling }),
  'sdp-copy': (ia: Ia, polling: Polling) => sdp(ia, { polling, zeroCopy: 'BUFFERED' }),
  'sdp-zero': (ia: Ia, polling: Polling) => sdp(ia, { polling, zeroCopyBytes: 2 }),
  'sdp-sink': (ia: Ia, polling: Polling) =>
    sdp(ia, { polling, zeroCopyBytes: 2, offersSink: true }),
} as const satisfies Readonly<Record<string, (ia: Ia, polling: Polling) => ByteStreamProtocol>>;

export type RdmaKind = keyof typeof PROTOCOLS;

export function isRdmaKind(kind: string): kind is RdmaKind {
  return Object.hasOwn(PROTOCOLS, kind);
}

/** Byte streams over softroce. */
export class RdmaSockets implements SocketKind {
  static async open(kind: RdmaKind, local: string, remote: string): Promise<RdmaSockets> {
    const ia = await openIa(softroce({ addresses: [local], shm: false }));
    return new RdmaSockets(kind, ia, remote);
  }

  private constructor(
    private readonly kind: RdmaKind,
    private readonly ia: Ia,
    private readonly remote: string,
  ) {}

  async listen({ polling }: Cell, take: (socket: Duplex) => void): Promise<Listening> {
    const protocol = this.protocol(polling);
    const server: RdmaServer = createServer({ protocol, allowHalfOpen: true }, take);
    await new Promise<void>((resolve, reject) => {
      server.on('error', reject).listen(0, resolve);
    });
    return { port: server.address()!.port, close: () => void server.close() };
  }

  connect({ polling }: Cell, port: number): Duplex {
    const protocol = this.protocol(polling);
    return createConnection({ protocol, host: this.remote, port, allowHalfOpen: true });
  }

  counters(): Counters {
    return this.ia.deviceCounters();
  }

  close(): Promise<void> {
    return this.ia.close('abrupt');
  }

  private protocol(polling: Cell['polling']): ByteStreamProtocol {
    return PROTOCOLS[this.kind](this.ia, polling === 'event' ? 'event' : 'adaptive');
  }
}
