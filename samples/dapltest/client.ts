/** The client: says on the control connection what it wants, and does its part of the test. */
import { setTimeout } from 'node:timers/promises';

import { DatEventNumber, type Ia } from 'dapl';

import { allocateMessage, type Message } from '../message.js';
import { Channel, ConnectionEnded } from '../channel.js';
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

/** Where the server is. */
export interface ServerAddress {
  readonly address: string;
  readonly port: number;
}

/** A server that is busy rejects. */
const ATTEMPTS = 8;
const PAUSE_MS = 1000;

export async function runTransaction(
  ia: Ia,
  server: ServerAddress,
  command: TransactionCommand,
  print: Print,
): Promise<void> {
  const control = new Control(ia);
  writeTransaction(control.command.bytes, command, control.namesOf(server));
  const info = await control.ask(server, TestType.TRANSACTION, command.threads);
  await transactionClient(ia, { ...info, address: server.address }, command, print);
  await control.end();
}

export async function runPerformance(
  ia: Ia,
  server: ServerAddress,
  command: PerformanceCommand,
  print: Print,
): Promise<void> {
  const control = new Control(ia);
  writePerformance(control.command.bytes, command, control.namesOf(server));
  const info = await control.ask(server, TestType.PERFORMANCE, 1);
  await performanceClient(ia, { ...info, address: server.address }, command, print);
  await control.end();
}

/** Ends the server, when the tests that it serves are done. */
export async function runQuit(ia: Ia, server: ServerAddress): Promise<void> {
  const control = new Control(ia);
  writeQuit(control.command.bytes, control.namesOf(server));
  await control.ask(server, TestType.QUIT, 0);
  await control.end();
}

/** The client's end of the control connection. */
class Control {
  readonly command: Message;
  private readonly clientInfo: Message;
  private readonly serverInfo: Message;
  private channel: Channel | undefined;

  constructor(private readonly ia: Ia) {
    const pz = ia.createPz();
    this.command = allocateMessage(ia, pz, CONTROL_BYTES);
    this.clientInfo = allocateMessage(ia, pz, CONTROL_BYTES);
    this.serverInfo = allocateMessage(ia, pz, CONTROL_BYTES);
  }

  namesOf({ address, port }: ServerAddress): Names {
    return { server: address, device: this.ia.query().ia.adapterName, port };
  }

  /** @throws Error when there is no answer, or one of another version */
  async ask(server: ServerAddress, testType: TestType, totalThreads: number): Promise<ServerInfo> {
    const channel = await this.connect(server);
    writeClientInfo(this.clientInfo.bytes, {
      version: VERSION,
      littleEndian: true,
      testType,
      totalThreads,
    });
    channel.post(this.clientInfo.segment);
    channel.post(this.command.segment);
    await channel.receive(0, CONTROL_BYTES, "the server's answer");
    const info = readServerInfo(this.serverInfo.bytes);
    if (info.version !== VERSION) {
      throw new Error(`the server speaks version ${info.version}, and this is ${VERSION}`);
    }
    return info;
  }

  private async connect({ address, port }: ServerAddress): Promise<Channel> {
    for (let attempt = 1; ; attempt++) {
      const { pz } = this.command.segment.lmr;
      const channel = new Channel(this.ia, pz, { receives: 1, requests: 2 });
      channel.postReceive(this.serverInfo.segment, 0);
      try {
        await channel.connect(address, port);
        this.channel = channel;
        return channel;
      } catch (error) {
        channel.free();
        if (attempt === ATTEMPTS || !isRejection(error)) throw error;
        await setTimeout(PAUSE_MS);
      }
    }
  }

  async end(): Promise<void> {
    await this.channel?.leave();
  }
}

function isRejection(error: unknown): boolean {
  if (!(error instanceof ConnectionEnded)) return false;
  return error.event.number === DatEventNumber.PEER_REJECTED;
}
