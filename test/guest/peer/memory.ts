/** Our end of memory-peer.c: RDMA reads and writes of any size, in single requests. */
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

const STEP_TIMEOUT_MS = patience(20_000);
const OFFER_BYTES = 16;
const READ_OFFSET = 1;
const LOCAL_OFFSET = 3;

interface Offer {
  readonly address: bigint;
  readonly rmrContext: number;
  readonly lengthBytes: number;
}

class MemoryLink {
  readonly memory: Lmr;
  private readonly message: Lmr;
  private readonly connections: Evd;
  private readonly completions: Evd;
  private readonly receives: Evd;
  readonly ep: Ep;

  constructor(ia: Ia, lengthBytes: number) {
    const pz = ia.createPz();
    const { LOCAL_READ, LOCAL_WRITE, REMOTE_READ, REMOTE_WRITE } = MemPrivileges;
    const privileges = LOCAL_READ | LOCAL_WRITE | REMOTE_READ | REMOTE_WRITE;
    this.memory = ia.allocate(lengthBytes, { pz, privileges });
    this.message = ia.allocate(OFFER_BYTES, { pz });
    this.connections = ia.createEvd({ qlen: 8 });
    this.completions = ia.createEvd({ qlen: 64 });
    this.receives = ia.createEvd({ qlen: 8 });
    this.ep = ia.createEndpoint({
      pz,
      connectEvd: this.connections,
      requestEvd: this.completions,
      recvEvd: this.receives,
    });
  }

  async connect(address: string, connQual: number): Promise<Offer> {
    const message = this.message.segment();
    this.ep.postRecv(message);
    this.ep.connect({ address, connQual, timeoutMs: STEP_TIMEOUT_MS });
    await this.established();
    const { event } = await this.receives.wait({ timeoutMs: STEP_TIMEOUT_MS });
    if (event.type !== 'dto' || event.status !== DatDtoStatus.SUCCESS) throw new Error('no offer');
    const view = new DataView(message.bytes.buffer, message.bytes.byteOffset, OFFER_BYTES);
    return {
      address: view.getBigUint64(0),
      rmrContext: view.getUint32(8),
      lengthBytes: view.getUint32(12),
    };
  }

  async established(): Promise<void> {
    const event = await this.connectionEvent();
    if (event.number !== DatEventNumber.ESTABLISHED) throw new Error(textOf(event));
  }

  async connectionEvent(): Promise<ConnectionEvent> {
    const { event } = await this.connections.wait({ timeoutMs: 2 * STEP_TIMEOUT_MS });
    if (event.type !== 'connection') throw new Error(`a ${event.type} event of a connection`);
    return event;
  }

  /** Says where our memory is; to a peer that has said so, it means "done". */
  async sendOffer(): Promise<void> {
    const { address, rmrContext = 0, lengthBytes } = this.memory;
    const message = this.message.segment();
    const view = new DataView(message.bytes.buffer, message.bytes.byteOffset, OFFER_BYTES);
    view.setBigUint64(0, address);
    view.setUint32(8, rmrContext);
    view.setUint32(12, lengthBytes);
    this.ep.postSend(message);
    await this.succeeded('send');
  }

  async read(offset: number, lengthBytes: number, offer: Offer, from: number): Promise<void> {
    const remote = { address: offer.address + BigInt(from), rmrContext: offer.rmrContext };
    this.ep.postRdmaRead(this.memory.segment(offset, lengthBytes), 0, remote);
    await this.succeeded(`read of ${lengthBytes} bytes`);
  }

  async write(offset: number, lengthBytes: number, offer: Offer, to: number): Promise<void> {
    const remote = { address: offer.address + BigInt(to), rmrContext: offer.rmrContext };
    this.ep.postRdmaWrite(this.memory.segment(offset, lengthBytes), 0, remote);
    await this.succeeded(`write of ${lengthBytes} bytes`);
  }

  async succeeded(what: string): Promise<void> {
    const { event } = await this.completions.wait({ timeoutMs: STEP_TIMEOUT_MS });
    if (event.type !== 'dto') throw new Error(`a ${event.type} event among completions`);
    if (event.status !== DatDtoStatus.SUCCESS) {
      throw new Error(`${what}: ${nameOf(DatDtoStatus, event.status)}`);
    }
  }
}

/** As `memory-peer drive`: for each size reads, compares, writes back further up, reads again. */
export async function driveMemory(
  ia: Ia,
  address: string,
  port: number,
  sizes: readonly number[],
): Promise<void> {
  const link = new MemoryLink(ia, Math.max(...sizes) + LOCAL_OFFSET);
  const offer = await link.connect(address, port);
  const half = Math.floor(offer.lengthBytes / 2);
  for (const size of sizes) {
    const local = link.memory.segment(LOCAL_OFFSET, size);
    await link.read(LOCAL_OFFSET, size, offer, READ_OFFSET);
    expectPattern(local.bytes, READ_OFFSET);
    await link.write(LOCAL_OFFSET, size, offer, half);
    local.bytes.fill(0xee);
    await link.read(LOCAL_OFFSET, size, offer, half);
    expectPattern(local.bytes, READ_OFFSET);
    process.stdout.write(`done ${size}\n`);
  }
  await link.sendOffer();
  await link.connectionEvent();
}

/** As `memory-peer serve`, until the peer disconnects. */
export async function serveMemory(ia: Ia, port: number, lengthBytes: number): Promise<void> {
  const requests = ia.createEvd({ qlen: 4 });
  const psp = ia.createPsp({ connQual: port, evd: requests });
  const link = new MemoryLink(ia, lengthBytes);
  fillPattern(link.memory.bytes);
  process.stdout.write('listening\n');
  const { event } = await requests.wait();
  if (event.type !== 'connection-request') throw new Error(`a ${event.type} event at the psp`);
  psp.free();
  event.cr.accept(link.ep);
  await link.established();
  await link.sendOffer();
  process.stdout.write(`${textOf(await link.connectionEvent())}\n`);
}

/** Writes into the peer's memory until the connection ends, and prints its last event. */
export async function floodMemory(ia: Ia, address: string, port: number): Promise<void> {
  const link = new MemoryLink(ia, 65_536);
  const offer = await link.connect(address, port);
  process.stdout.write('flooding\n');
  try {
    for (;;) await link.write(0, link.memory.lengthBytes, offer, 0);
  } catch (error) {
    if (!(error instanceof Error)) throw error;
    process.stdout.write(`${error.message}\n${textOf(await link.connectionEvent())}\n`);
  }
}

function fillPattern(bytes: Uint8Array): void {
  for (let at = 0; at < bytes.length; at++) bytes[at] = pattern(at);
}

function expectPattern(bytes: Uint8Array, offset: number): void {
  const wrong = bytes.findIndex((byte, at) => byte !== pattern(offset + at));
  if (wrong >= 0)
    throw new Error(`read of ${bytes.length} bytes: byte ${wrong} is ${bytes[wrong]}`);
}

function pattern(at: number): number {
  return (at * 7 + (at >> 8)) & 0xff;
}
