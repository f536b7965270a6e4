/**
 * A group of ranks, each connected to each: what the collectives stand on. Every pair has one
 * reliable connection, so messages between two ranks arrive in the order in which they were sent,
 * and each goes straight into the memory that its receiver has named.
 *
 * Collectives are a library here and not calls of `dapl`: DAT knows them as an extension that
 * hands them to a switch or a special device (dat_ib_collective_*), which RoCE has not. What is
 * left is an algorithm over connected endpoints; which one is best depends on the application, so
 * it belongs where it can be changed.
 */
import {
  DatDtoStatus,
  type DatEvent,
  DatEventNumber,
  type Ep,
  type Evd,
  type Ia,
  type Lmr,
  nameOf,
  type Pz,
} from 'dapl';
import type { Numbers, NumbersType } from './numbers.js';

export interface GroupOptions {
  readonly ia: Ia;
  /** 0 to the number of addresses less one. */
  readonly rank: number;
  /** Where each rank listens, by rank: an IP address in text. */
  readonly addresses: readonly string[];
  /** The same for all; default 7600. */
  readonly connQual?: number;
}

interface Waiting {
  readonly rank: number;
  readonly resolve: () => void;
  readonly reject: (error: Error) => void;
}

/** A receiver that is late costs its sender waits of 1.28 ms (code 14), as many as it takes. */
const transport = { rnrRetryCount: 7, minRnrTimer: 14 };
const attributes = { maxRecvDtos: 64, maxRequestDtos: 64, transport };

/** One rank's part of the group. Made by `joinGroup`. */
export class Group {
  private readonly waiting = new Map<number, Waiting>();
  private readonly regions = new Map<ArrayBufferLike, Lmr>();
  private readonly scratches = new Map<string, Lmr>();
  private cookie = 0;
  /** By rank, why nothing can be exchanged with it any more. */
  private readonly failures: (Error | undefined)[] = [];

  constructor(
    readonly ia: Ia,
    readonly rank: number,
    readonly size: number,
    private readonly pz: Pz,
    private readonly evd: Evd,
    /** By rank; none at the own. */
    private readonly eps: readonly (Ep | undefined)[],
  ) {
    evd.events$.subscribe((event) => this.onEvent(event));
  }

  /** An array in registered memory: what the collectives take. */
  array<T extends Numbers>(type: NumbersType<T>, length: number): T {
    const lmr = this.ia.allocate(Math.max(1, length * type.BYTES_PER_ELEMENT), { pz: this.pz });
    const { buffer, byteOffset } = lmr.bytes;
    this.regions.set(buffer, lmr);
    return new type(buffer as ArrayBuffer, byteOffset, length);
  }

  /** Registered memory of the same type and length, used again by the next call of that name. */
  scratch<T extends Numbers>(name: string, like: T): T {
    const type = like.constructor as NumbersType<T>;
    const known = this.scratches.get(name);
    if (known !== undefined && known.lengthBytes >= like.byteLength) {
      return new type(known.bytes.buffer as ArrayBuffer, known.bytes.byteOffset, like.length);
    }
    const made = this.array(type, like.length);
    this.scratches.set(name, this.regionOf(made));
    return made;
  }

  /** Resolves when the bytes are at the other rank. */
  async send(to: number, data: Numbers): Promise<void> {
    const segment = this.segmentOf(data);
    return this.start(to, (cookie) => this.epOf(to).postSend(segment, cookie));
  }

  /** Resolves when the next message of that rank is here. */
  async receive(from: number, into: Numbers): Promise<void> {
    const segment = this.segmentOf(into);
    return this.start(from, (cookie) => this.epOf(from).postRecv(segment, cookie));
  }

  /** Both at once; the receive is posted first, so that ranks that do the same never wait. */
  async exchange(to: number, data: Numbers, from: number, into: Numbers): Promise<void> {
    const received = this.receive(from, into);
    await Promise.all([received, this.send(to, data)]);
  }

  /** The rank at a distance, around the ring. */
  neighbour(distance: number): number {
    return (((this.rank + distance) % this.size) + this.size) % this.size;
  }

  /** Leaves the group: others learn of it by the failure of what they do next. */
  close(): void {
    for (const rank of this.eps.keys()) this.fail(rank, new Error('the group has been left'));
    for (const ep of this.eps) ep?.free();
    for (const lmr of this.regions.values()) lmr.free();
    this.regions.clear();
    this.scratches.clear();
  }

  private start(rank: number, post: (cookie: number) => void): Promise<void> {
    return new Promise((resolve, reject) => {
      const failure = this.failures[rank];
      if (failure !== undefined) throw failure;
      const cookie = this.cookie++;
      post(cookie);
      this.waiting.set(cookie, { rank, resolve, reject });
    });
  }

  private onEvent(event: DatEvent): void {
    if (event.type === 'connection') {
      const rank = this.eps.indexOf(event.ep);
      const what = nameOf(DatEventNumber, event.number);
      this.fail(rank, new Error(`rank ${rank} is gone: ${what}`));
    }
    if (event.type !== 'dto') return;
    const waiting = this.waiting.get(event.cookie);
    this.waiting.delete(event.cookie);
    if (event.status === DatDtoStatus.SUCCESS) waiting?.resolve();
    else waiting?.reject(new Error(`a transfer failed: ${nameOf(DatDtoStatus, event.status)}`));
  }

  /** A rank may leave when its own part is done; only what is to be exchanged with it fails. */
  private fail(gone: number, error: Error): void {
    this.failures[gone] ??= error;
    for (const [cookie, { rank, reject }] of this.waiting) {
      if (rank !== gone) continue;
      this.waiting.delete(cookie);
      reject(error);
    }
  }

  private epOf(rank: number): Ep {
    const ep = this.eps[rank];
    if (ep === undefined) throw new RangeError(`rank ${rank} of ${this.size} is not another one`);
    return ep;
  }

  private segmentOf(data: Numbers): ReturnType<Lmr['segment']> {
    const lmr = this.regionOf(data);
    return lmr.segment(data.byteOffset - lmr.bytes.byteOffset, data.byteLength);
  }

  private regionOf(data: Numbers): Lmr {
    const lmr = this.regions.get(data.buffer);
    if (lmr === undefined) throw new TypeError('the array is not one of group.array()');
    return lmr;
  }
}

/** Connects this rank with all others; resolves when every connection is there. */
export async function joinGroup(options: GroupOptions): Promise<Group> {
  const { ia, rank, addresses, connQual = 7600 } = options;
  const size = addresses.length;
  const pz = ia.createPz();
  const evd = ia.createEvd({ qlen: 256 * size });
  const evds = { recvEvd: evd, requestEvd: evd, connectEvd: evd };
  const make = (): Ep => ia.createEndpoint({ pz, ...evds, attributes });
  const eps: (Ep | undefined)[] = addresses.map((_, other) => (other < rank ? make() : undefined));
  const psp = ia.createPsp({ connQual, evd });
  const dial = (other: number): void =>
    eps[other]?.connect({
      address: addresses[other] ?? '',
      connQual,
      privateData: new Uint8Array(Uint32Array.of(rank).buffer),
    });
  for (let other = 0; other < rank; other++) dial(other);
  let connected = 0;
  while (connected < size - 1) {
    const { event } = await evd.wait();
    if (event.type === 'connection-request') {
      const { cr } = event;
      const ep = make();
      eps[new DataView(cr.privateData.buffer, cr.privateData.byteOffset).getUint32(0, true)] = ep;
      cr.accept(ep);
    } else if (event.type === 'connection') {
      if (event.number === DatEventNumber.ESTABLISHED) connected++;
      else dialAgain(event.ep, event.number);
    }
  }
  psp.free();
  return new Group(ia, rank, size, pz, evd, eps);

  /** Ranks start in any order: one that does not listen yet refuses. */
  function dialAgain(ep: Ep, number: DatEventNumber): void {
    if (number !== DatEventNumber.NON_PEER_REJECTED && number !== DatEventNumber.UNREACHABLE) {
      throw new Error(`rank ${eps.indexOf(ep)}: ${nameOf(DatEventNumber, number)}`);
    }
    setTimeout(() => {
      ep.reset();
      dial(eps.indexOf(ep));
    }, 50);
  }
}
