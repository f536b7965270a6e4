/** The client: requests a test on the control connection, then runs its part. */
import { setTimeout } from 'node:timers/promises';

import type { Ia } from 'dapl';
import { connect, type Connection, FlowError } from 'dapl/flow';

import { sentenceOf } from '../program.js';
import { CONTROL, nextControl } from './control.js';
import {
  CONTROL_BYTES,
  type Names,
  type PerformanceCommand,
  readServerInfo,
  type ServerInfo,
  TestType,
  type TransactionCommand,
  VERSION,
  writeClientInfo,
  writePerformance,
  writeQuit,
  writeTransaction,
} from './messages.js';
import { performanceClient } from './performance.js';
import type { Print } from './report.js';
import { transactionClient } from './transaction.js';

/** Address of the server. */
export interface ServerAddress {
  readonly address: string;
  readonly port: number;
}

const CONNECT_TIMEOUT_MS = 20_000;
/** Attempts to connect: a busy server rejects. */
const ATTEMPTS = 8;
const PAUSE_MS = 1000;

export async function runTransaction(
  ia: Ia,
  server: ServerAddress,
  command: TransactionCommand,
  print: Print,
): Promise<void> {
  const message = Buffer.alloc(CONTROL_BYTES);
  writeTransaction(message, command, namesOf(ia, server));
  await using conn = await connected(ia, server);
  const info = await ask(conn, TestType.TRANSACTION, command.threads, message);
  await transactionClient(ia, { ...info, address: server.address }, command, print);
}

export async function runPerformance(
  ia: Ia,
  server: ServerAddress,
  command: PerformanceCommand,
  print: Print,
): Promise<void> {
  const message = Buffer.alloc(CONTROL_BYTES);
  writePerformance(message, command, namesOf(ia, server));
  await using conn = await connected(ia, server);
  const info = await ask(conn, TestType.PERFORMANCE, 1, message);
  await performanceClient(ia, { ...info, address: server.address }, command, print);
}

/** Ends the server, after the tests that it is running. */
export async function runQuit(ia: Ia, server: ServerAddress): Promise<void> {
  const message = Buffer.alloc(CONTROL_BYTES);
  writeQuit(message, namesOf(ia, server));
  await using conn = await connected(ia, server);
  await ask(conn, TestType.QUIT, 0, message);
}

function namesOf(ia: Ia, { address, port }: ServerAddress): Names {
  return { server: address, device: ia.query().ia.adapterName, port };
}

async function connected(ia: Ia, { address, port }: ServerAddress): Promise<Connection> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await connect(ia, { address, port, timeoutMs: CONNECT_TIMEOUT_MS, ...CONTROL });
    } catch (cause) {
      const isBusy = FlowError.isFlowError(cause) && cause.code === 'DAT_CONN_REJECTED';
      if (attempt < ATTEMPTS && isBusy) await setTimeout(PAUSE_MS);
      else throw new Error(`port ${port} of ${address}: ${sentenceOf(cause)}`, { cause });
    }
  }
}

/** @throws Error if there is no answer, or one of another version */
async function ask(
  conn: Connection,
  testType: TestType,
  totalThreads: number,
  command: Buffer,
): Promise<ServerInfo> {
  const client = Buffer.alloc(CONTROL_BYTES);
  writeClientInfo(client, { version: VERSION, littleEndian: true, testType, totalThreads });
  // The answer shows whether they have arrived.
  for (const message of [client, command]) conn.send(message).catch(() => undefined);
  const info = readServerInfo(await nextControl(conn, "the server's answer"));
  if (info.version === VERSION) return info;
  throw new Error(`the server has version ${info.version}, this client ${VERSION}`);
}
