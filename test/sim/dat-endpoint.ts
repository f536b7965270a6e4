/**
 * One side of one connection through the DAT API, with its checks: every DTO ends exactly once and
 * in order, data never comes before ESTABLISHED, the one end of the connection comes after all
 * DTOs.
 */
import {
  CompletionFlags,
  DatDtoStatus,
  DatEventNumber,
  MemPrivileges,
  RemoteSegment,
  nameOf,
} from '../../core/index.js';
import type { ConnectionEvent, DatEvent, DtoCompletionEvent, Ep, Evd } from '../../core/index.js';
import type { Ia, Lmr, Pz } from '../../core/index.js';
import type { Fabric, SeededRandom } from '../../providers/mock/index.js';
import { Violation } from './trace.js';
import type { Trace } from './trace.js';

/** How the consumer takes events. */
export const TAKING = ['dequeue', 'upcall', 'stream', 'batches'] as const;
export type Taking = (typeof TAKING)[number];

const SLOTS = 16;
const SLOT_BYTES = 3000;
const DEQUEUE_US = 100;
const MISTAKE_PERCENT = 0.2;
const TERMINAL: readonly number[] = [
  DatEventNumber.DISCONNECTED,
  DatEventNumber.BROKEN,
  DatEventNumber.PEER_REJECTED,
  DatEventNumber.NON_PEER_REJECTED,
  DatEventNumber.ACCEPT_COMPLETION_ERROR,
  DatEventNumber.TIMED_OUT,
  DatEventNumber.UNREACHABLE,
];

interface Request {
  readonly cookie: number;
  readonly suppressed: boolean;
  /** What a READ must bring, and where. */
  readonly expected?: { readonly at: number; readonly data: Uint8Array };
  readonly slot: number;
}

export interface DatWorld {
  readonly fabric: Fabric;
  readonly random: SeededRandom;
  readonly trace: Trace;
  /** Counts how often a thing was seen. */
  mark(name: string): void;
  guard(handler: () => void): void;
  onEnd(endpoint: DatEndpoint): void;
}

export class DatEndpoint {
  readonly ep: Ep;
  readonly evd: Evd;
  readonly lmr: Lmr;
  readonly #pz: Pz;
  readonly #requests: Request[] = [];
  readonly #receives: { readonly cookie: number; readonly slot: number }[] = [];
  /** Payloads of messages, in the order of posting. */
  readonly messages: Uint8Array[] = [];
  readonly #busy = new Set<number>();
  peer: DatEndpoint | undefined;
  established = false;
  /** The event that ended it. */
  end: ConnectionEvent | undefined;
  posted = 0;
  #received = 0;
  #failed = false;
  #nextCookie = 2;
  #freed = false;

  constructor(
    readonly name: string,
    readonly ia: Ia,
    taking: Taking,
    private readonly world: DatWorld,
  ) {
    this.#pz = ia.createPz();
    const handler = (event: DatEvent): void => this.#guarded(event);
    this.evd =
      taking === 'upcall'
        ? ia.createEvd({ qlen: 256, policy: 'ONE', handler })
        : ia.createEvd({ qlen: 256 });
    const evds = { recvEvd: this.evd, requestEvd: this.evd, connectEvd: this.evd };
    const transport = { ackTimeout: 9, retryCount: 7, rnrRetryCount: 7, minRnrTimer: 4 };
    const attributes = { maxRecvDtos: 16, maxRequestDtos: 16, transport };
    this.ep = ia.createEndpoint({ pz: this.#pz, ...evds, attributes });
    const bytes = 3 * SLOTS * SLOT_BYTES;
    this.lmr = ia.allocate(bytes, { pz: this.#pz, privileges: MemPrivileges.ALL });
    for (let i = 0; i < bytes; i++) this.lmr.bytes[i] = world.random.u32();
    if (taking === 'stream') this.evd.events$.subscribe(handler);
    if (taking === 'dequeue') this.#poll();
    if (taking === 'batches') void this.#iterate();
  }

  // --- posting ----------------------------------------------------------------------------------

  postReceives(most: number): void {
    for (let i = Math.min(most, this.ep.receivesFree); i > 0; i--) {
      const slot = this.#slot(0);
      if (slot < 0) return;
      const cookie = this.#cookie(1);
      this.#receives.push({ cookie, slot });
      this.ep.postRecv(this.lmr.segment(slot * SLOT_BYTES, SLOT_BYTES), cookie);
    }
  }

  postRequests(most: number): void {
    for (let i = Math.min(most, this.ep.requestsFree); i > 0; i--) {
      const kind = this.world.random.below(3);
      if (kind === 0) this.#send();
      else this.#rdma(kind === 1);
    }
  }

  #send(): void {
    const { random } = this.world;
    const suppressed = random.percent(30);
    const length = random.below(SLOT_BYTES);
    const at = 2 * SLOTS * SLOT_BYTES + random.below(SLOTS * SLOT_BYTES - length);
    this.messages.push(this.lmr.bytes.slice(at, at + length));
    const cookie = this.#cookie(0);
    this.#requests.push({ cookie, suppressed, slot: -1 });
    this.#count();
    this.ep.postSend(this.lmr.segment(at, length), cookie, flagsOf(suppressed));
  }

  /**
   * READs and WRITEs of the peer's source area, which never changes: a WRITE writes what is there.
   */
  #rdma(read: boolean): void {
    const { random } = this.world;
    const { peer } = this;
    const slot = read ? this.#slot(SLOTS) : -1;
    if (!peer?.established || (read && slot < 0)) return;
    const suppressed = random.percent(30);
    const length = random.between(1, SLOT_BYTES);
    const from = 2 * SLOTS * SLOT_BYTES + random.below(SLOTS * SLOT_BYTES - length);
    const { address, rmrContext = 0 } = peer.lmr;
    const key = random.percent(MISTAKE_PERCENT) ? random.u32() : rmrContext;
    const remote = new RemoteSegment({ address, rmrContext: key }).seek(from);
    const data = peer.lmr.bytes.slice(from, from + length);
    const cookie = this.#cookie(0);
    const at = slot * SLOT_BYTES;
    this.#count();
    if (read) {
      this.#requests.push({ cookie, suppressed, slot, expected: { at, data } });
      const sink = this.lmr.segment(at, length);
      this.ep.postRdmaRead(sink, cookie, remote, flagsOf(suppressed));
    } else {
      this.#requests.push({ cookie, suppressed, slot: -1 });
      const own = this.lmr.segment(from, 0);
      this.ep.postRdmaWrite(own, cookie, remote, flagsOf(suppressed));
    }
  }

  // --- events -----------------------------------------------------------------------------------

  #guarded(event: DatEvent): void {
    this.world.guard(() => this.#take(event));
  }

  #take(event: DatEvent): void {
    if (this.#freed) throw new Violation(`${this.name}: event ${event.type} after its end`);
    if (event.type === 'dto') this.#takeDto(event);
    else if (event.type === 'connection') this.#takeConnection(event);
    else throw new Violation(`${this.name}: unexpected event ${event.type}`);
  }

  #takeConnection(event: ConnectionEvent): void {
    const name = nameOf(DatEventNumber, event.number);
    const what = `${this.name}: ${name}`;
    this.world.mark(name);
    this.world.trace.note(what);
    this.world.trace.numbers(event.number);
    if (this.end) throw new Violation(`${what} after the end`);
    if (event.number === DatEventNumber.ESTABLISHED) {
      if (this.established) throw new Violation(`${what} twice`);
      this.established = true;
      return;
    }
    if (!TERMINAL.includes(event.number)) throw new Violation(`${what} is no event of this`);
    this.end = event;
    const left = this.#requests.filter(({ suppressed }) => !suppressed).length;
    if (this.established && left + this.#receives.length > 0) {
      throw new Violation(`${what} before ${left} requests, ${this.#receives.length} receives`);
    }
    this.world.onEnd(this);
  }

  #takeDto(event: DtoCompletionEvent): void {
    const status = nameOf(DatDtoStatus, event.status);
    const what = `${this.name}: DTO ${event.cookie} ${status}`;
    this.world.mark(`DTO ${status}`);
    this.world.trace.numbers(event.cookie, event.status, event.transferredLength);
    const success = event.status === DatDtoStatus.SUCCESS;
    if (success && !this.established) throw new Violation(`${what} before ESTABLISHED`);
    if (this.established && this.end) throw new Violation(`${what} after the end`);
    if (event.cookie % 2 === 1) this.#takeReceive(event, what);
    else this.#takeRequest(event, what);
  }

  #takeReceive(event: DtoCompletionEvent, what: string): void {
    const receive = this.#receives.shift();
    if (receive?.cookie !== event.cookie) throw new Violation(`${what}: not the oldest receive`);
    this.#busy.delete(receive.slot);
    if (event.status !== DatDtoStatus.SUCCESS) return;
    const message = this.peer?.messages[this.#received++];
    if (!message) throw new Violation(`${what}: nobody sent that`);
    this.#compare(receive.slot * SLOT_BYTES, message, what);
    if (message.length !== event.transferredLength) throw new Violation(`${what}: wrong length`);
  }

  #takeRequest(event: DtoCompletionEvent, what: string): void {
    const at = this.#requests.findIndex(({ cookie }) => cookie === event.cookie);
    const ended = this.#requests.splice(0, at + 1);
    if (at < 0) throw new Violation(`${what}: no such request`);
    const own = ended.pop();
    if (ended.some(({ suppressed }) => !suppressed)) throw new Violation(`${what}: out of order`);
    for (const request of [...ended, ...(own ? [own] : [])]) this.#busy.delete(request.slot);
    if (event.status !== DatDtoStatus.SUCCESS) {
      const first = event.status !== DatDtoStatus.FLUSHED;
      if (first && this.#failed) throw new Violation(`${what}: a second failure`);
      this.#failed ||= first;
      return;
    }
    if (own?.suppressed) throw new Violation(`${what}: it was suppressed`);
    if (own?.expected) this.#compare(own.expected.at, own.expected.data, what);
  }

  #compare(at: number, expected: Uint8Array, what: string): void {
    const actual = this.lmr.bytes.subarray(at, at + expected.length);
    if (Buffer.compare(actual, expected) !== 0) throw new Violation(`${what}: wrong bytes`);
  }

  // --- end --------------------------------------------------------------------------------------

  free(): void {
    this.ep.free();
    this.#freed = true;
    this.lmr.free();
    this.evd.free().catch((error: unknown) => {
      this.world.guard(() => {
        throw error;
      });
    });
    this.#pz.free();
  }

  // --- ways to take events ----------------------------------------------------------------------

  #poll(): void {
    const { fabric, random } = this.world;
    fabric.clock.at(fabric.clock.now() + random.exponential(DEQUEUE_US), () => {
      if (this.#freed) return;
      for (let event = this.evd.dequeue(); event; event = this.evd.dequeue()) this.#guarded(event);
      if (!this.end) this.#poll();
    });
  }

  async #iterate(): Promise<void> {
    for await (const batch of this.evd) {
      for (const event of batch) this.#guarded(event);
      if (this.end) break;
    }
  }

  #slot(from: number): number {
    for (let slot = from; slot < from + SLOTS; slot++) {
      if (this.#busy.has(slot)) continue;
      this.#busy.add(slot);
      return slot;
    }
    return -1;
  }

  #cookie(parity: 0 | 1): number {
    this.#nextCookie += 2;
    return this.#nextCookie + parity;
  }

  #count(): void {
    this.posted++;
  }
}

function flagsOf(suppressed: boolean): number {
  return suppressed ? CompletionFlags.SUPPRESS : CompletionFlags.DEFAULT;
}
