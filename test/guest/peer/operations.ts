/** Our end of operations-peer.c: atomics, immediates, memory windows and invalidation. */
import { DatDto, DatDtoStatus, DatEventNumber, MemPrivileges, nameOf } from 'dapl';
import type { ConnectionEvent, DatEvent, DtoCompletionEvent, Ep, Evd, Ia, Lmr } from 'dapl';

import { textOf } from './exchange.js';

const STEP_TIMEOUT_MS = 20_000;
const MEMORY_BYTES = 8192;
const MESSAGE_BYTES = 64;
const OFFER_BYTES = 16;
const RECEIVES = 6;

/** Where in the memory of a side what is done to it. */
const AT = { sum: 0, swap: 8, window: 16, written: 64 } as const;
const WINDOW_BYTES = 8;
const WRITTEN_BYTES = 5000;

const SUM_BEFORE = 7n;
const [FIRST, SECOND] = [5n, BigInt.asUintN(64, -20n)];
const [SWAP_BEFORE, SWAP_AFTER] = [0x1122334455667788n, 0xa1b2c3d4e5f60718n];
const [WRITE_IMMEDIATE, SEND_IMMEDIATE] = [0xdeadbeef, 0x01020304];

interface Offer {
  readonly address: bigint;
  readonly rmrContext: number;
  readonly window: number;
}

class Side {
  readonly ep: Ep;
  private readonly memory: Lmr;
  private readonly scratch: Lmr;
  private readonly messages: Lmr;
  private readonly connections: Evd;
  private readonly requested: Evd;
  private readonly received: Evd;
  private window = 0;

  constructor(private readonly ia: Ia) {
    const pz = ia.createPz();
    const privileges = MemPrivileges.ALL | MemPrivileges.REMOTE_ATOMIC;
    this.memory = ia.allocate(MEMORY_BYTES, { pz, privileges });
    this.scratch = ia.allocate(MEMORY_BYTES, { pz });
    this.messages = ia.allocate(RECEIVES * MESSAGE_BYTES, { pz });
    this.connections = ia.createEvd({ qlen: 8 });
    this.requested = ia.createEvd({ qlen: 64 });
    this.received = ia.createEvd({ qlen: 64 });
    this.ep = ia.createEndpoint({
      pz,
      connectEvd: this.connections,
      requestEvd: this.requested,
      recvEvd: this.received,
    });
    viewOf(this.memory.bytes).setBigUint64(AT.sum, SUM_BEFORE, true);
    viewOf(this.memory.bytes).setBigUint64(AT.swap, SWAP_BEFORE, true);
    for (let index = 0; index < RECEIVES; index++) {
      this.ep.postRecv(this.messages.segment(index * MESSAGE_BYTES, MESSAGE_BYTES), index);
    }
  }

  async connectionEvent(): Promise<ConnectionEvent> {
    const { event } = await this.connections.wait({ timeoutMs: STEP_TIMEOUT_MS });
    if (event.type !== 'connection') throw new Error(`a ${event.type} event of a connection`);
    return event;
  }

  async established(): Promise<void> {
    const event = await this.connectionEvent();
    if (event.number !== DatEventNumber.ESTABLISHED) throw new Error(textOf(event));
  }

  async bindWindow(): Promise<void> {
    const rmr = this.ia.createRmrForEp(this.ep.pz);
    const segment = this.memory.segment(AT.window, WINDOW_BYTES);
    const privileges = MemPrivileges.REMOTE_WRITE;
    this.window = rmr.bind(segment, this.ep, { privileges }) ?? 0;
    expectSuccess('bind', await this.ended());
  }

  async exchangeOffers(): Promise<Offer> {
    const ours = viewOf(this.scratch.bytes);
    ours.setBigUint64(0, this.memory.address);
    ours.setUint32(8, this.memory.rmrContext ?? 0);
    ours.setUint32(12, this.window);
    this.ep.postSend(this.scratch.segment(0, OFFER_BYTES));
    expectSuccess('offer', await this.ended());
    await this.receive('offer', DatDto.RECEIVE);
    const theirs = viewOf(this.messages.bytes);
    return {
      address: theirs.getBigUint64(0),
      rmrContext: theirs.getUint32(8),
      window: theirs.getUint32(12),
    };
  }

  async request(offer: Offer): Promise<void> {
    const { ep, scratch } = this;
    const result = scratch.segment(0, 8);
    const at = (offset: number, rmrContext = offer.rmrContext) => ({
      address: offer.address + BigInt(offset),
      rmrContext,
    });
    const old = async (): Promise<bigint> => {
      expectSuccess('atomic', await this.ended());
      return viewOf(scratch.bytes).getBigUint64(0, true);
    };
    ep.postFetchAdd(result, 0, at(AT.sum), FIRST);
    expect('sum before', await old(), SUM_BEFORE);
    ep.postFetchAdd(result, 0, at(AT.sum), SECOND);
    expect('sum between', await old(), SUM_BEFORE + FIRST);
    ep.postCompareSwap(result, 0, at(AT.swap), 1n, 2n);
    expect('a vain swap', await old(), SWAP_BEFORE);
    ep.postCompareSwap(result, 0, at(AT.swap), SWAP_BEFORE, SWAP_AFTER);
    expect('a swap', await old(), SWAP_BEFORE);
    scratch.bytes.forEach((_, index, bytes) => (bytes[index] = pattern(index)));
    const segment = (lengthBytes: number) => scratch.segment(0, lengthBytes);
    ep.postRdmaWrite(segment(WINDOW_BYTES), 0, at(AT.window, offer.window));
    expectSuccess('write through the window', await this.ended());
    ep.postRdmaWriteWithImmediate(segment(WRITTEN_BYTES), 0, at(AT.written), WRITE_IMMEDIATE);
    expectSuccess('write with immediate', await this.ended());
    ep.postSendWithImmediate(segment(MESSAGE_BYTES), 0, SEND_IMMEDIATE);
    expectSuccess('send with immediate', await this.ended());
    ep.postSendWithInvalidate(segment(MESSAGE_BYTES), 0, offer.window);
    expectSuccess('send with invalidate', await this.ended());
    ep.postSend(segment(0));
    expectSuccess('done', await this.ended());
    process.stdout.write('requester ok\n');
  }

  /** What the peer has done to us, by our receives and our memory. */
  async respond(): Promise<void> {
    const written = await this.receive('write with immediate', DatDto.RECV_IMMED);
    expect('immediate of the write', written.immediate, WRITE_IMMEDIATE);
    expect('bytes of the write', written.transferredLength, WRITTEN_BYTES);
    const sent = await this.receive('send with immediate', DatDto.RECV_MSG_IMMED);
    expect('immediate of the send', sent.immediate, SEND_IMMEDIATE);
    expectPattern(this.messages.bytes.subarray(2 * MESSAGE_BYTES, 3 * MESSAGE_BYTES));
    const shut = await this.receive('send with invalidate', DatDto.RECEIVE_WITH_INVALIDATE);
    expect('invalidated', shut.invalidatedRmrContext, this.window);
    expect('bytes of done', (await this.receive('done', DatDto.RECEIVE)).transferredLength, 0);
    const { bytes } = this.memory;
    const word = (at: number): bigint => viewOf(bytes).getBigUint64(at, true);
    expect('sum', word(AT.sum), BigInt.asUintN(64, SUM_BEFORE + FIRST + SECOND));
    expect('swapped', word(AT.swap), SWAP_AFTER);
    expectPattern(bytes.subarray(AT.window, AT.window + WINDOW_BYTES));
    expectPattern(bytes.subarray(AT.written, AT.written + WRITTEN_BYTES));
    expect('behind the written', bytes[AT.written + WRITTEN_BYTES], 0);
    process.stdout.write('responder ok\n');
  }

  async driveShutWindow(offer: Offer): Promise<void> {
    const address = offer.address + BigInt(AT.window);
    const remote = { address, rmrContext: offer.window };
    this.ep.postRdmaWrite(this.scratch.segment(0, WINDOW_BYTES), 0, remote);
    const event = await this.ended();
    const status = event.type === 'dto' ? nameOf(DatDtoStatus, event.status) : event.type;
    process.stdout.write(`shut window: ${status}\n`);
  }

  private async ended(): Promise<DatEvent> {
    return (await this.requested.wait({ timeoutMs: STEP_TIMEOUT_MS })).event;
  }

  private async receive(what: string, operation: DatDto): Promise<DtoCompletionEvent> {
    const { event } = await this.received.wait({ timeoutMs: STEP_TIMEOUT_MS });
    expectSuccess(what, event);
    if (event.type !== 'dto') throw new Error(`${what}: a ${event.type} event`);
    expect(what, nameOf(DatDto, event.operation), nameOf(DatDto, operation));
    return event;
  }
}

/** As `operations-peer drive`. */
export async function driveOperations(ia: Ia, address: string, connQual: number): Promise<void> {
  const side = new Side(ia);
  side.ep.connect({ address, connQual, timeoutMs: STEP_TIMEOUT_MS });
  await side.established();
  await side.bindWindow();
  const offer = await side.exchangeOffers();
  await side.request(offer);
  await side.respond();
  await side.driveShutWindow(offer);
  process.stdout.write(`${textOf(await side.connectionEvent())}\n`);
}

/** As `operations-peer serve`. */
export async function serveOperations(ia: Ia, connQual: number): Promise<void> {
  const requests = ia.createEvd({ qlen: 4 });
  const psp = ia.createPsp({ connQual, evd: requests });
  const side = new Side(ia);
  process.stdout.write('listening\n');
  const { event } = await requests.wait();
  if (event.type !== 'connection-request') throw new Error(`a ${event.type} event at the psp`);
  psp.free();
  event.cr.accept(side.ep);
  await side.established();
  await side.bindWindow();
  await side.request(await side.exchangeOffers());
  await side.respond();
  process.stdout.write(`${textOf(await side.connectionEvent())}\n`);
}

function expectSuccess(what: string, event: DatEvent): void {
  if (event.type !== 'dto' && event.type !== 'rmr-bind') {
    throw new Error(`${what}: a ${event.type} event`);
  }
  expect(what, nameOf(DatDtoStatus, event.status), 'SUCCESS');
}

function expect<T>(what: string, is: T, shouldBe: T): void {
  if (is !== shouldBe) throw new Error(`${what}: ${String(is)}, not ${String(shouldBe)}`);
}

function expectPattern(bytes: Uint8Array): void {
  const wrong = bytes.findIndex((byte, at) => byte !== pattern(at));
  if (wrong >= 0) throw new Error(`byte ${wrong} of ${bytes.length} is ${bytes[wrong]}`);
}

function viewOf(bytes: Uint8Array): DataView {
  return new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

function pattern(at: number): number {
  return (at * 7 + (at >> 8)) & 0xff;
}
