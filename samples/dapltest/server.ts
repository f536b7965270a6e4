/** The server: a control connection for each client, then the test that the client requests. */
import type { Ia } from 'dapl';
import { type Connection, listen, type Listener } from 'dapl/flow';
import { leaveUnhandled } from 'dapl/spi';

import { sentenceOf } from '../program.js';
import { CONTROL, nextControl } from './control.js';
import {
  type ClientInfo,
  CONTROL_BYTES,
  readClientInfo,
  readPerformance,
  readTransaction,
  TestType,
  VERSION,
  writeServerInfo,
} from './messages.js';
import { lengthOf } from './operations.js';
import { PerformanceServer } from './performance.js';
import type { Print } from './report.js';
import { Ports } from './service.js';
import { TransactionServer } from './transaction.js';

/** Number of ports for tests, after the port of the control connection. */
const TEST_PORTS = 1000;
const MAX_TEST_BYTES = 2 ** 32;
const MAX_CLIENTS = 64;
/** Time for a client to close its control connection by itself. */
const FAREWELL_TIMEOUT_MS = 5000;

export interface ServerOptions {
  readonly port: number;
  /** The name in the line that tells scripts to start their clients. */
  readonly name: string;
}

/** Opens an adapter on the local address. */
export type Open = () => Promise<Ia>;

/** A test that waits for its client's connections. */
interface Test {
  readonly ia: Ia;
  readonly firstPort: number;
  readonly portCount: number;
  readonly server: TransactionServer | PerformanceServer;
}

/** Serves until a client asks it to quit (`-T Q`), or its adapter is closed. */
export async function runServer(open: Open, options: ServerOptions, print: Print): Promise<void> {
  const { port } = options;
  const listener = await listen(await open(), { port, backlog: MAX_CLIENTS, ...CONTROL });
  const server = new Server(listener, open, print);
  print(`Dapltest: Service Point Ready - ${options.name}`);
  await server.run();
}

class Server {
  private readonly ports: Ports;
  private readonly sessions = new Set<Promise<void>>();

  constructor(
    private readonly listener: Listener,
    private readonly open: Open,
    private readonly print: Print,
  ) {
    this.ports = new Ports(listener.port + 1, TEST_PORTS);
  }

  async run(): Promise<void> {
    for await (const conn of this.listener) this.begin(conn);
    await Promise.all(this.sessions);
  }

  private begin(conn: Connection): void {
    const session = this.serve(conn)
      .catch((error: unknown) => {
        this.print(`Server: a client's test has failed: ${sentenceOf(error)}`);
      })
      .finally(() => this.sessions.delete(session));
    this.sessions.add(session);
  }

  private async serve(conn: Connection): Promise<void> {
    let test: Test | undefined;
    try {
      const client = await clientOf(conn);
      const command = await nextControl(conn, 'the command');
      if (client.testType === TestType.QUIT) {
        answer(conn, this.ports.next);
        leaveUnhandled(this.listener.close());
      } else {
        test = await this.prepare(client, command);
        answer(conn, test.firstPort);
        await test.server.run(client);
      }
      await conn.receive({ timeoutMs: FAREWELL_TIMEOUT_MS }).catch(() => undefined);
    } finally {
      if (test !== undefined) await this.finish(test);
      await conn.close();
    }
  }

  /** Prepares a test on an adapter of its own: closing that destroys all objects of the test. */
  private async prepare(client: ClientInfo, command: Buffer): Promise<Test> {
    const ia = await this.open();
    try {
      if (client.testType === TestType.PERFORMANCE) {
        const wanted = readPerformance(command);
        const firstPort = this.ports.take(1);
        const server = new PerformanceServer(ia, firstPort, wanted, this.print);
        return { ia, firstPort, portCount: 1, server };
      }
      if (client.testType !== TestType.TRANSACTION) {
        throw new Error(`it asks for a test of the unknown type ${client.testType}`);
      }
      const wanted = readTransaction(command);
      const portCount = wanted.threads * wanted.endpointsPerThread;
      checkMemory(portCount, wanted.operations.map(lengthOf));
      const firstPort = this.ports.take(portCount);
      const server = new TransactionServer(ia, firstPort, wanted, this.print);
      return { ia, firstPort, portCount, server };
    } catch (error) {
      await ia.close('abrupt');
      throw error;
    }
  }

  private async finish({ ia, firstPort, portCount }: Test): Promise<void> {
    await ia.close('abrupt');
    this.ports.giveBack(firstPort, portCount);
  }
}

/** @throws Error for another version */
async function clientOf(conn: Connection): Promise<ClientInfo> {
  const client = readClientInfo(await nextControl(conn, 'client information'));
  if (client.version === VERSION) return client;
  throw new Error(`the client has version ${client.version}, this server ${VERSION}`);
}

/**
 * Sends the port to connect to. The client need not acknowledge it: connecting shows that it
 * arrived.
 */
function answer(conn: Connection, firstPort: number): void {
  const message = Buffer.alloc(CONTROL_BYTES);
  writeServerInfo(message, { version: VERSION, littleEndian: true, firstPort });
  conn.send(message).catch(() => undefined);
}

/** Limits the memory that a client can make the server allocate. */
function checkMemory(endpoints: number, lengths: readonly number[]): void {
  const bytes = endpoints * lengths.reduce((sum, length) => sum + length, 0);
  if (endpoints >= 1 && endpoints <= TEST_PORTS && bytes <= MAX_TEST_BYTES) return;
  throw new Error(`it asks for ${endpoints} endpoints with ${bytes} bytes in all`);
}
