/** The server: a control connection for each client, then the test that it asks for. */
import type { Cr, Evd, Ia, Psp, Pz } from 'dapl';

import { sentenceOf } from '../program.js';
import { allocateMessage, type Message } from '../message.js';
import { Channel } from '../channel.js';
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

/** Ports of tests, behind that of the control connection. */
const TEST_PORTS = 1000;
const MAX_TEST_BYTES = 2 ** 32;
const MAX_CLIENTS = 64;
const CLIENT_INFO = 0;
const COMMAND = 1;

export interface ServerOptions {
  readonly port: number;
  /** What the line says that tells scripts to start their clients. */
  readonly name: string;
}

/** Opens an adapter on the own address. */
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
  const server = new Server(await open(), open, options.port, print);
  print(`Dapltest: Service Point Ready - ${options.name}`);
  await server.run();
}

class Server {
  private readonly requests: Evd;
  private readonly psp: Psp;
  private readonly pz: Pz;
  private readonly ports: Ports;
  private readonly sessions = new Set<Promise<void>>();

  constructor(
    private readonly ia: Ia,
    private readonly open: Open,
    port: number,
    private readonly print: Print,
  ) {
    this.pz = ia.createPz();
    this.ports = new Ports(port + 1, TEST_PORTS);
    this.requests = ia.createEvd({ qlen: MAX_CLIENTS });
    this.psp = ia.createPsp({ connQual: port, evd: this.requests });
  }

  async run(): Promise<void> {
    for await (const batch of this.requests) {
      for (const event of batch) if (event.type === 'connection-request') this.begin(event.cr);
    }
    await Promise.all(this.sessions);
  }

  private begin(request: Cr): void {
    const session = this.serve(request).catch((error: unknown) => {
      this.print(`Server: a client's test has failed: ${sentenceOf(error)}`);
    });
    this.sessions.add(session);
    void session.then(() => this.sessions.delete(session));
  }

  private async serve(request: Cr): Promise<void> {
    const control = new ControlConnection(this.ia, this.pz);
    let test: Test | undefined;
    try {
      const client = await control.accept(request);
      if (client.testType === TestType.QUIT) {
        control.answer(this.ports.next);
        this.quit();
        await control.ended();
        return;
      }
      test = await this.prepare(client, control.command.bytes);
      control.answer(test.firstPort);
      await test.server.run(client);
      await control.ended();
    } finally {
      control.free();
      if (test !== undefined) await this.finish(test);
    }
  }

  /** An adapter for each test: closing it ends all that is left of the test. */
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

  private quit(): void {
    this.psp.free();
    void this.requests.free();
  }
}

/** The server's end of a control connection. */
class ControlConnection {
  readonly command: Message;
  private readonly clientInfo: Message;
  private readonly answerMessage: Message;
  private readonly channel: Channel;

  constructor(ia: Ia, pz: Pz) {
    this.channel = new Channel(ia, pz, { receives: 2, requests: 1 });
    this.clientInfo = allocateMessage(ia, pz, CONTROL_BYTES);
    this.command = allocateMessage(ia, pz, CONTROL_BYTES);
    this.answerMessage = allocateMessage(ia, pz, CONTROL_BYTES);
    this.channel.postReceive(this.clientInfo.segment, CLIENT_INFO);
    this.channel.postReceive(this.command.segment, COMMAND);
  }

  /** Returns when the command is there. @throws Error for another version */
  async accept(request: Cr): Promise<ClientInfo> {
    await this.channel.accept(request);
    await this.channel.receive(CLIENT_INFO, CONTROL_BYTES, 'client information');
    const client = readClientInfo(this.clientInfo.bytes);
    await this.channel.receive(COMMAND, CONTROL_BYTES, 'the command');
    if (client.version === VERSION) return client;
    throw new Error(`the client speaks version ${client.version}, and this is ${VERSION}`);
  }

  /** Tells where to connect to. */
  answer(firstPort: number): void {
    const info = { version: VERSION, littleEndian: true, firstPort };
    writeServerInfo(this.answerMessage.bytes, info);
    this.channel.post(this.answerMessage.segment);
  }

  ended(): Promise<void> {
    return this.channel.ended();
  }

  free(): void {
    this.channel.free();
    for (const { segment } of [this.clientInfo, this.command, this.answerMessage]) {
      segment.lmr.free();
    }
  }
}

/** A stranger does not take all the memory of the machine. */
function checkMemory(endpoints: number, lengths: readonly number[]): void {
  const bytes = endpoints * lengths.reduce((sum, length) => sum + length, 0);
  if (endpoints >= 1 && endpoints <= TEST_PORTS && bytes <= MAX_TEST_BYTES) return;
  throw new Error(`it asks for ${endpoints} endpoints with ${bytes} bytes in all`);
}
