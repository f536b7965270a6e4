/**
 * One side of one connection through the DAT API, with its checks: every DTO ends exactly once and
 * in order, data never comes before ESTABLISHED, the one end of the connection comes after all
 * DTOs.
 */
import {
  type ConnectionEvent,
  DatDtoStatus,
  type DatEvent,
  DatEventNumber,
  type DtoCompletionEvent,
  type Ep,
  type Evd,
  type Ia,
  type Lmr,
  MemPrivileges,
  nameOf,
  type Pz,
  type RmrBindCompletionEvent,
} from '../../core/index.js';
import type { Fabric, SeededRandom } from '../../providers/mock/index.js';
import { DatConsumer } from './dat-consumer.js';
import {
  DatPosts,
  type Message,
  type Request,
  SLOT_BYTES,
  SLOTS,
  TOTAL_BYTES,
} from './dat-posts.js';
import type { DatShared } from './dat-shared.js';
import { type Trace, Violation } from './trace.js';

/** How the consumer takes events. */
export const TAKING = [
  ...(['dequeue', 'upcall', 'stream', 'batches'] as const),
  ...(['many', 'notify', 'switching', 'cno', 'agent'] as const),
] as const;
export type Taking = (typeof TAKING)[number];

const TERMINAL: readonly number[] = [
  DatEventNumber.DISCONNECTED,
  DatEventNumber.BROKEN,
  DatEventNumber.PEER_REJECTED,
  DatEventNumber.NON_PEER_REJECTED,
  DatEventNumber.ACCEPT_COMPLETION_ERROR,
  DatEventNumber.TIMED_OUT,
  DatEventNumber.UNREACHABLE,
];

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
  private readonly pz: Pz;
  readonly shared: DatShared | undefined;
  private readonly consumer: DatConsumer;
  readonly posts: DatPosts;
  private readonly requests: Request[] = [];
  private readonly receives: { readonly cookie: number; readonly slot: number }[] = [];
  /** Payloads of messages, in the order of posting. */
  readonly messages: Message[] = [];
  private readonly busy = new Set<number>();
  peer: DatEndpoint | undefined;
  established = false;
  /** The event that ended it. */
  end: ConnectionEvent | undefined;
  posted = 0;
  private received = 0;
  private failed = false;
  private nextCookie = 2;
  private freed = false;

  constructor(
    public name: string,
    readonly ia: Ia,
    taking: Taking,
    shared: DatShared | undefined,
    private readonly world: DatWorld,
  ) {
    this.pz = ia.createPz();
    const handler = (event: DatEvent): void => this.guarded(event);
    this.consumer = new DatConsumer(taking, ia, world, handler, () => !this.freed);
    this.evd = this.consumer.evd;
    this.shared = shared;
    const evds = { recvEvd: this.evd, requestEvd: this.evd, connectEvd: this.evd };
    const transport = { ackTimeout: 9, retryCount: 7, rnrRetryCount: 7, minRnrTimer: 4 };
    const attributes = { maxRecvDtos: 16, maxRequestDtos: 16, transport };
    const srq = shared && { srq: shared.srq };
    this.ep = ia.createEndpoint({ pz: this.pz, ...evds, ...srq, attributes });
    const bytes = TOTAL_BYTES;
    this.lmr = ia.allocate(bytes, {
      pz: this.pz,
      privileges: MemPrivileges.ALL | MemPrivileges.REMOTE_ATOMIC,
    });
    fill(this.lmr.bytes, world.random.u32());
    this.posts = new DatPosts(this, this.pz, world);
    this.consumer.start();
  }

  // --- posting ----------------------------------------------------------------------------------

  postReceives(most: number): void {
    if (this.shared) {
      this.shared.post(most);
      return;
    }
    for (let i = Math.min(most, this.ep.receivesFree); i > 0; i--) {
      const slot = this.slot(0);
      if (slot < 0) return;
      const cookie = this.cookie(1);
      this.receives.push({ cookie, slot });
      this.ep.postRecv(this.lmr.segment(slot * SLOT_BYTES, SLOT_BYTES), cookie);
    }
  }

  postRequests(most: number): void {
    for (let i = Math.min(most, this.ep.requestsFree); i > 0; i--) this.posts.postOne();
  }

  /** Remembers what is about to be posted. */
  expect(request: Request): void {
    this.requests.push(request);
    this.posted++;
  }

  // --- events -----------------------------------------------------------------------------------

  private guarded(event: DatEvent): void {
    this.world.guard(() => this.take(event));
  }

  private take(event: DatEvent): void {
    if (this.freed) throw new Violation(`${this.name}: event ${event.type} after its end`);
    if (event.type === 'dto') this.takeDto(event);
    else if (event.type === 'rmr-bind') this.takeBind(event);
    else if (event.type === 'connection') this.takeConnection(event);
    else throw new Violation(`${this.name}: unexpected event ${event.type}`);
  }

  private takeConnection(event: ConnectionEvent): void {
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
    const left = this.requests.filter(({ suppressed }) => !suppressed).length;
    if (this.established && left + this.receives.length > 0) {
      throw new Violation(`${what} before ${left} requests, ${this.receives.length} receives`);
    }
    this.world.onEnd(this);
  }

  private takeDto(event: DtoCompletionEvent): void {
    const status = nameOf(DatDtoStatus, event.status);
    const what = `${this.name}: DTO ${event.cookie} ${status}`;
    this.world.mark(`DTO ${status}`);
    this.world.trace.numbers(event.cookie, event.status, event.transferredLength);
    const success = event.status === DatDtoStatus.SUCCESS;
    if (success && !this.established) throw new Violation(`${what} before ESTABLISHED`);
    if (this.established && this.end) throw new Violation(`${what} after the end`);
    if (event.cookie % 2 === 1) this.takeReceive(event, what);
    else this.takeRequest(event, what);
  }

  private takeReceive(event: DtoCompletionEvent, what: string): void {
    const success = event.status === DatDtoStatus.SUCCESS;
    const { shared } = this;
    let bytes = this.lmr.bytes;
    let slot: number;
    if (shared) {
      slot = shared.take(event.cookie, what);
      bytes = shared.lmr.bytes;
    } else {
      const receive = this.receives.shift();
      if (receive?.cookie !== event.cookie) throw new Violation(`${what}: not the oldest receive`);
      slot = receive.slot;
      this.busy.delete(slot);
    }
    if (!success) return;
    const message = this.peer?.messages[this.received++];
    if (!message) throw new Violation(`${what}: nobody sent that`);
    const { data, write, immediate, invalidates } = message;
    if (data.length !== event.transferredLength) throw new Violation(`${what}: wrong length`);
    if (event.immediate !== immediate) throw new Violation(`${what}: immediate ${event.immediate}`);
    if (event.invalidatedRmrContext !== invalidates) {
      throw new Violation(
        `${what}: ${event.invalidatedRmrContext} invalidated, not ${invalidates}`,
      );
    }
    if (invalidates !== undefined) this.posts.onInvalidated(invalidates);
    if (write) return;
    const at = slot * SLOT_BYTES;
    const same = Buffer.compare(bytes.subarray(at, at + data.length), data) === 0;
    if (!same) throw new Violation(`${what}: wrong bytes`);
    this.world.mark(shared ? 'received from an SRQ' : 'received');
  }

  private takeBind(event: RmrBindCompletionEvent): void {
    const what = `${this.name}: bind ${event.cookie} ${nameOf(DatDtoStatus, event.status)}`;
    this.world.trace.numbers(event.cookie, event.status);
    if (this.established && this.end) throw new Violation(`${what} after the end`);
    const request = this.endRequest(event.cookie, event.status, what);
    if (event.status === DatDtoStatus.SUCCESS) request.done?.();
  }

  private takeRequest(event: DtoCompletionEvent, what: string): void {
    const own = this.endRequest(event.cookie, event.status, what);
    if (event.status !== DatDtoStatus.SUCCESS) return;
    if (own.suppressed) throw new Violation(`${what}: it was suppressed`);
    if (own.mustFail) throw new Violation(`${what}: its key is of no use`);
    if (own.expected) this.compare(own.expected.at, own.expected.data, what);
    own.done?.();
  }

  private endRequest(cookie: number, status: number, what: string): Request {
    const at = this.requests.findIndex((request) => request.cookie === cookie);
    const ended = this.requests.splice(0, at + 1);
    const own = ended.pop();
    if (!own) throw new Violation(`${what}: no such request`);
    if (ended.some(({ suppressed }) => !suppressed)) throw new Violation(`${what}: out of order`);
    for (const request of [...ended, own]) this.busy.delete(request.slot);
    if (status !== DatDtoStatus.SUCCESS) {
      const first = status !== DatDtoStatus.FLUSHED;
      if (first) this.world.trace.note(`${what}`);
      if (first && this.failed) throw new Violation(`${what}: a second failure`);
      this.failed ||= first;
    }
    return own;
  }

  /** Says what is wrong with what the peer has done to its memory. */
  violate(what: string): never {
    throw new Violation(`${this.name}: ${what}`);
  }

  private compare(at: number, expected: Uint8Array, what: string): void {
    const actual = this.lmr.bytes.subarray(at, at + expected.length);
    if (Buffer.compare(actual, expected) !== 0) throw new Violation(`${what}: wrong bytes`);
  }

  // --- end --------------------------------------------------------------------------------------

  /** Makes the endpoint usable for another connection. */
  reset(name: string): void {
    this.ep.reset();
    this.name = name;
    this.peer = undefined;
    this.end = undefined;
    this.established = this.failed = false;
    this.received = 0;
    for (const { slot } of [...this.requests.splice(0), ...this.receives.splice(0)]) {
      this.busy.delete(slot);
    }
    this.messages.length = 0;
    this.posts.reset();
    this.world.mark('endpoints reset');
  }

  free(): void {
    this.posts.free();
    this.ep.free();
    this.freed = true;
    this.lmr.free();
    this.consumer.free();
    this.pz.free();
  }

  slot(from: number): number {
    for (let slot = from; slot < from + SLOTS; slot++) {
      if (this.busy.has(slot)) continue;
      this.busy.add(slot);
      return slot;
    }
    return -1;
  }

  cookie(parity: 0 | 1): number {
    this.nextCookie += 2;
    return this.nextCookie + parity;
  }
}

/** Bytes without a pattern: a linear congruence. */
function fill(bytes: Uint8Array, seed: number): void {
  let word = seed;
  for (let i = 0; i < bytes.length; i++) {
    word = (Math.imul(word, 1664525) + 1013904223) >>> 0;
    bytes[i] = word >>> 24;
  }
}
