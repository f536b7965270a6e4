/**
 * Our end of transfer-peer.c: messages and their echoes, writes and reads, in rounds, over a link
 * that the case makes bad. It waits for SIGUSR2 where the case shall change the link: when it is
 * connected, and before it disconnects.
 */
import { once } from 'node:events';

import {
  type ConnectionEvent,
  DatDtoStatus,
  DatEventNumber,
  type Ep,
  type Evd,
  type Ia,
  type Lmr,
  MemPrivileges,
  nameOf,
} from 'dapl';

import { patience } from '../../support/patience.js';
import { textOf } from './exchange.js';

/** Seven retries that back off, several times, on a loaded machine. */
const STEP_TIMEOUT_MS = patience(60_000);
const OFFER_BYTES = 12;

export interface TransferOptions {
  readonly lengthBytes: number;
  readonly rounds: number;
  /** Exponent of the local ACK timeout, 4.096 us * 2^n. */
  readonly ackTimeout: number;
  readonly retryCount: number;
}

class TransferSide {
  readonly ep: Ep;
  readonly memory: Lmr;
  readonly outgoing: Lmr;
  readonly incoming: Lmr;
  readonly written: Lmr;
  private readonly connections: Evd;
  private readonly requested: Evd;
  private readonly receivedEvd: Evd;

  constructor(ia: Ia, { lengthBytes, ackTimeout, retryCount }: TransferOptions) {
    const pz = ia.createPz();
    const { LOCAL_READ, LOCAL_WRITE, REMOTE_READ, REMOTE_WRITE } = MemPrivileges;
    const privileges = LOCAL_READ | LOCAL_WRITE | REMOTE_READ | REMOTE_WRITE;
    this.memory = ia.allocate(lengthBytes, { pz, privileges });
    this.outgoing = ia.allocate(lengthBytes, { pz });
    this.incoming = ia.allocate(lengthBytes, { pz });
    this.written = ia.allocate(lengthBytes, { pz });
    this.connections = ia.createEvd({ qlen: 8 });
    this.requested = ia.createEvd({ qlen: 64 });
    this.receivedEvd = ia.createEvd({ qlen: 8 });
    this.ep = ia.createEndpoint({
      pz,
      connectEvd: this.connections,
      requestEvd: this.requested,
      recvEvd: this.receivedEvd,
      attributes: { transport: { ackTimeout, retryCount } },
    });
    this.receive();
  }

  receive(): void {
    this.ep.postRecv(this.incoming.segment());
  }

  async connectionEvent(): Promise<ConnectionEvent> {
    const { event } = await this.connections.wait({ timeoutMs: STEP_TIMEOUT_MS });
    if (event.type !== 'connection') throw new Error(`a ${event.type} event of a connection`);
    return event;
  }

  async established(): Promise<void> {
    const event = await this.connectionEvent();
    if (event.number !== DatEventNumber.ESTABLISHED) throw new Error(textOf(event));
    await go('connected');
  }

  sent(what: string): Promise<number> {
    return this.completion(this.requested, what);
  }

  received(): Promise<number> {
    return this.completion(this.receivedEvd, 'receive');
  }

  private async completion(evd: Evd, what: string): Promise<number> {
    const { event } = await evd.wait({ timeoutMs: STEP_TIMEOUT_MS });
    if (event.type !== 'dto') throw new Error(`${what}: a ${event.type} event`);
    if (event.status !== DatDtoStatus.SUCCESS) {
      throw new Error(`${what}: ${nameOf(DatDtoStatus, event.status)}`);
    }
    return event.transferredLength;
  }
}

/** As `transfer-peer drive`; a transfer that fails is told with the connection's last event. */
export async function driveTransfer(
  ia: Ia,
  address: string,
  connQual: number,
  options: TransferOptions,
): Promise<void> {
  const side = new TransferSide(ia, options);
  side.ep.connect({ address, connQual, timeoutMs: STEP_TIMEOUT_MS });
  await side.established();
  try {
    await side.received();
    const offer = viewOf(side.incoming.bytes);
    const remote = { address: offer.getBigUint64(0), rmrContext: offer.getUint32(8) };
    for (let round = 0; round < options.rounds; round++) {
      await driveRound(side, round, remote);
      process.stdout.write(`done ${round}\n`);
    }
  } catch (error) {
    if (!(error instanceof Error)) throw error;
    process.stdout.write(`${error.message}\n${textOf(await side.connectionEvent())}\n`);
    return;
  }
  await go('transferred');
  side.receive();
  side.ep.postSend(side.outgoing.segment(0, 0));
  await side.sent('end');
  await side.received();
  process.stdout.write(`${textOf(await side.connectionEvent())}\n`);
}

async function driveRound(
  side: TransferSide,
  round: number,
  remote: { readonly address: bigint; readonly rmrContext: number },
): Promise<void> {
  side.receive();
  fill(side.outgoing.bytes, round);
  fill(side.written.bytes, round + 1);
  side.memory.bytes.fill(0xee);
  side.ep.postSend(side.outgoing.segment());
  side.ep.postRdmaWrite(side.written.segment(), 0, remote);
  side.ep.postRdmaRead(side.memory.segment(), 0, remote);
  for (const what of ['send', 'write', 'read']) await side.sent(what);
  expectPattern('read', side.memory.bytes, round + 1);
  const echoed = await side.received();
  expectPattern('echo', side.incoming.bytes.subarray(0, echoed), round);
  if (echoed !== side.incoming.lengthBytes) throw new Error(`an echo of ${echoed} bytes`);
}

/** As `transfer-peer serve`. */
export async function serveTransfer(
  ia: Ia,
  connQual: number,
  options: TransferOptions,
): Promise<void> {
  const requests = ia.createEvd({ qlen: 4 });
  const psp = ia.createPsp({ connQual, evd: requests });
  const side = new TransferSide(ia, options);
  process.stdout.write('listening\n');
  const { event } = await requests.wait();
  if (event.type !== 'connection-request') throw new Error(`a ${event.type} event at the psp`);
  psp.free();
  event.cr.accept(side.ep);
  await side.established();
  const offer = viewOf(side.outgoing.bytes);
  offer.setBigUint64(0, side.memory.address);
  offer.setUint32(8, side.memory.rmrContext ?? 0);
  side.ep.postSend(side.outgoing.segment(0, OFFER_BYTES));
  await side.sent('offer');
  let round = 0;
  try {
    while (await echoed(side, round)) round++;
  } catch (error) {
    if (!(error instanceof Error)) throw error;
    process.stdout.write(`${error.message}\n${textOf(await side.connectionEvent())}\n`);
    return;
  }
  expectPattern('memory', side.memory.bytes, round);
  await go(`served ${round}`);
  side.ep.postSend(side.outgoing.segment(0, 0));
  await side.sent('end');
  process.stdout.write(`${textOf(await side.connectionEvent())}\n`);
}

/** False after the driver's last message, which is empty. */
async function echoed(side: TransferSide, round: number): Promise<boolean> {
  const got = await side.received();
  if (got === 0) return false;
  expectPattern('message', side.incoming.bytes.subarray(0, got), round);
  side.outgoing.bytes.set(side.incoming.bytes);
  side.receive();
  side.ep.postSend(side.outgoing.segment(0, got));
  await side.sent('echo');
  return true;
}

/** Says where we are, and waits for the case to say that we may go on. */
async function go(where: string): Promise<void> {
  const signal = once(process, 'SIGUSR2');
  const alive = setInterval(() => undefined, STEP_TIMEOUT_MS);
  process.stdout.write(`${where}\n`);
  await signal;
  clearInterval(alive);
}

function fill(bytes: Uint8Array, round: number): void {
  for (let at = 0; at < bytes.length; at++) bytes[at] = pattern(at, round);
}

function expectPattern(what: string, bytes: Uint8Array, round: number): void {
  const wrong = bytes.findIndex((byte, at) => byte !== pattern(at, round));
  if (wrong < 0) return;
  throw new Error(`${what} of round ${round}: byte ${wrong} of ${bytes.length} is ${bytes[wrong]}`);
}

function pattern(at: number, round: number): number {
  return (at * 7 + (at >> 8) + round * 13) & 0xff;
}

function viewOf(bytes: Uint8Array): DataView {
  return new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}
